"""Topics are exported to Iceberg and Delta tables, each record once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace
from tailrace.client.admin import delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tests.support.exported_tables import FORMATS, data_files, export, named_files, offsets, opened, rows
from tests.support.filled_topics import numbered, put

pytestmark = pytest.mark.parametrize("form", FORMATS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        yield broker


@pytest.mark.parametrize("way", ["files", "wire"])
def test_an_export_continues_where_the_table_ends(way: str, form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    source = broker.bootstrap if way == "wire" else str(broker.data)
    assert export(form, tmp_path / "out", source).records == 0
    put(broker.bootstrap, "t", 0, numbered(30))
    put(broker.bootstrap, "t", 1, [*numbered(5), (b"k", None)])
    first = export(form, tmp_path / "out", source)
    assert (first.records, first.commits, first.ends) == (
        36,
        1,
        {TopicPartition("t", 0): 30, TopicPartition("t", 1): 6},
    )
    put(broker.bootstrap, "t", 0, numbered(10))
    second = export(form, tmp_path / "out", source)
    assert (second.records, second.commits) == (10, 1)
    assert export(form, tmp_path / "out", source).commits == 0
    found = rows(form, tmp_path / "out")
    assert [(row["partition"], row["offset"]) for row in found] == [(0, n) for n in range(40)] + [
        (1, n) for n in range(6)
    ]
    assert found[0]["key"] == b"key 0"
    assert found[0]["timestamp"].year == 2023
    assert found[-1]["value"] is None
    assert data_files(form, tmp_path / "out") == named_files(form, tmp_path / "out")


def test_rounds_are_bounded_and_leave_no_gap(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put(broker.bootstrap, "t", 0, numbered(50))
    put(broker.bootstrap, "t", 1, numbered(10))
    found = export(form, tmp_path, broker.bootstrap, round_bytes=20 * 1024)
    assert found.commits > 1
    assert offsets(form, tmp_path) == [(0, n) for n in range(50)] + [(1, n) for n in range(10)]


def test_files_and_cluster_give_one_table(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    export(form, tmp_path / "out", str(broker.data))
    put(broker.bootstrap, "t", 0, numbered(20))
    assert export(form, tmp_path / "out", broker.bootstrap).records == 20
    assert offsets(form, tmp_path / "out") == [(0, n) for n in range(40)]


def test_a_topic_that_was_created_again_is_refused(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    export(form, tmp_path / "out", broker.bootstrap)
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "t")
    broker.create_topic("t", partitions=2)
    put(broker.bootstrap, "t", 0, numbered(9))
    with pytest.raises(JobError, match="topic t was deleted and created again"):
        export(form, tmp_path / "out", broker.bootstrap)
    assert len(rows(form, tmp_path / "out")) == 5


@pytest.mark.parametrize("names", [("date",), ("date", "hour"), ("topic", "partition")])
def test_a_table_is_partitioned_as_requested(
    names: tuple[str, ...], form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    put(broker.bootstrap, "t", 1, numbered(5), timestamp=1_700_090_000_000)
    found = export(form, tmp_path / "out", broker.bootstrap, partition_by=names)
    assert found.files == 2
    assert len(rows(form, tmp_path / "out")) == 10
    again = export(form, tmp_path / "out", broker.bootstrap)  # follows the table
    assert again.commits == 0
    with pytest.raises(JobError, match="exists and is not partitioned by offset"):
        export(form, tmp_path / "out", broker.bootstrap, partition_by=("offset",))


def test_several_topics_share_a_table(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    broker.create_topic("u", partitions=1)
    put(broker.bootstrap, "t", 0, numbered(3))
    put(broker.bootstrap, "u", 0, numbered(4))
    export(form, tmp_path / "out", broker.bootstrap, ["t"])
    export(form, tmp_path / "out", broker.bootstrap, ["u"])
    assert export(form, tmp_path / "out", broker.bootstrap, ["t", "u"]).commits == 0
    assert [row["topic"] for row in rows(form, tmp_path / "out")] == ["t"] * 3 + ["u"] * 4


def test_small_files_are_merged_without_changing_the_end_offsets(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    from tests.support.inline_spark import InlineSpark

    out = tmp_path / "out"
    for _ in range(9):
        put(broker.bootstrap, "t", 0, numbered(3))
        put(broker.bootstrap, "t", 1, numbered(2))
        export(form, out, broker.bootstrap, partition_by=("partition",))
    before = rows(form, out)
    table = opened(form, out)
    table.open(export_schema(), ())
    merged = table.merge(InlineSpark(), target_bytes=1 << 20, compression="zstd")
    assert (merged.files_before, merged.files_after) == (18, 2)
    assert rows(form, out) == before
    assert len(named_files(form, out)) == 2
    put(broker.bootstrap, "t", 0, numbered(3))
    assert export(form, out, broker.bootstrap).records == 3
    expired = table.expire(4_000_000_000_000)
    assert expired.files >= 18
    assert data_files(form, out) == named_files(form, out)
    assert len(rows(form, out)) == len(before) + 3
    assert export(form, out, broker.bootstrap).commits == 0


def export_schema() -> object:
    from tailrace.spark.tables.row_form import RECORD_SCHEMA

    return RECORD_SCHEMA
