"""Loads inside Spark: the records of one directory are copied to another, and a broker can use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.diff.diff import diff
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.export.export import export
from tailrace.spark.jobs.load.load import load
from tests.support.command import contents
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden


def rows_of(spark: Any, path: Path, topics: str) -> Any:
    options = {"path": str(path), "subscribe": topics, "kafka.isolation.level": "read_committed"}
    return spark.read.format("tailrace").options(**options, includeHeaders="true").load()


def test_a_restored_directory_has_no_diff_and_a_second_load_adds_nothing(spark: Any, tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path / "kafka")
    frame = rows_of(spark, path, "orders,payments")
    restored = tmp_path / "restored"
    found = load(spark, frame, str(restored), compression="zstd", batch_bytes=500)
    assert found.topics_created == ["orders", "payments"]
    same = diff(spark, str(path), str(restored), topics=["orders", "payments"], read_committed=True)
    assert same.is_equal, same
    assert not list(tmp_path.glob("*.staging"))
    before = contents(restored)
    with pytest.raises(JobError, match=r"orders-0 ends at offset \d+, but the first record to load has offset 0"):
        load(spark, frame, str(restored))
    after = contents(restored)
    assert {name for name in before if name.endswith(".log")} == {name for name in after if name.endswith(".log")}


@pytest.mark.slow
def test_a_broker_serves_and_appends_to_restored_topics(spark: Any, tmp_path: Path) -> None:
    """The source is a directory of Apache Kafka with compacted logs, transactions, tombstones and headers."""
    path = golden("broker-clean").unpack(tmp_path / "kafka")
    topics = ["orders", "payments", "users", "audit"]
    export(spark, str(path), str(tmp_path / "backup"), topics=topics)
    restored = tmp_path / "restored"
    found = load(spark, str(tmp_path / "backup"), str(restored))
    assert diff(spark, str(path), str(restored), topics=topics, read_committed=True).is_equal
    with tailrace.Broker(restored) as broker:
        put(broker.bootstrap, "orders", 0, numbered(3))
    end = next(one.end_offset for one in found.partitions if one.partition == TopicPartition("orders", 0))
    more = diff(spark, str(path), str(restored), topics=["orders"], read_committed=True)
    assert more.partitions[TopicPartition("orders", 0)].there.spans == [(end, end + 2, 3)]


@pytest.mark.slow
def test_json_lines_are_loaded_into_a_cluster_and_with_new_offsets_into_a_directory(spark: Any, tmp_path: Path) -> None:
    lines = [
        {"key": f"k{n % 7}", "value": None if n % 5 == 0 else f"v{n}", "timestamp": 1_700_000_000_000 + n}
        for n in range(100)
    ]
    file = tmp_path / "lines.json"
    file.write_text("\n".join(map(json.dumps, lines)))
    with tailrace.Broker(tmp_path / "data") as broker:
        done = load(spark, str(file), broker.bootstrap, kind="json", topic="t", partitions=3)
        assert sum(one.records for one in done.partitions) == 100
        load(spark, str(file), str(tmp_path / "other"), kind="json", topic="t", partitions=3)
        assert diff(spark, broker.bootstrap, str(tmp_path / "other"), topics=["t"]).is_equal
        with pytest.raises(JobError, match=r"data is in use by another process, .*give its address with --bootstrap"):
            load(spark, str(file), str(tmp_path / "data"), kind="json", topic="t")


def test_invalid_rows_end_the_load_without_changes(spark: Any, tmp_path: Path) -> None:
    target = tmp_path / "data"
    frame = spark.createDataFrame(
        [("t", 0, 5, b"a"), ("t", 0, 5, b"b")], "topic string, partition int, offset bigint, value binary"
    )
    with pytest.raises(JobError, match=r"^t-0 at offset 5: the record has offset 5, which does not follow 5$"):
        load(spark, frame, str(target))
    with pytest.raises(JobError, match=r"^the column 'value' is missing; the columns are: topic, partition, offset$"):
        load(spark, frame.drop("value"), str(target))
    with pytest.raises(JobError, match=r"^topic t does not exist in "):
        load(spark, frame.drop("partition"), str(target), topic="t", new_offsets=True)
    assert not target.exists()
    assert not list(tmp_path.glob("*.staging"))


@pytest.mark.slow
def test_csv_is_loaded_with_its_partitions_offsets_and_timestamps(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(
        "topic,partition,offset,timestamp,value\nt,1,12,1700000000000,b\nt,1,7,2023-11-14T22:13:20Z,a\nt,0,3,,\n"
    )
    load(spark, str(file), str(tmp_path / "data"), kind="csv")
    found = {(row.partition, row.offset): row for row in rows_of(spark, tmp_path / "data", "t").collect()}
    assert {place: row.value for place, row in found.items()} == {(0, 3): None, (1, 7): b"a", (1, 12): b"b"}
    assert found[(1, 7)].timestamp == found[(1, 12)].timestamp
