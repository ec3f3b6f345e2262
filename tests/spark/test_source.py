"""The source inside Spark: found by its name, as batch and stream, over files and over the network.

Its rows are tested without Spark (tests/unit/spark, tests/integration/test_spark_*). These tests cover the integration
with Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        yield broker


def wire(broker: tailrace.Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}


def offsets(frame: Any) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def span(partition: int, start: int, end: int) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(start, end)]


def test_a_batch_query_over_files_returns_all_rows(spark: Any, tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path)
    options = {"path": str(path), "subscribe": "orders", "includeHeaders": "true", "pushFilters": "true"}
    frame = spark.read.format("tailrace").options(**options).load()
    narrow = frame.where("partition = 0 and offset between 2 and 4")
    found = sorted((row.asDict(recursive=True) for row in narrow.collect()), key=lambda row: row["offset"])
    assert [row["offset"] for row in found] == [2, 3, 4]
    expected = golden("broker-clean").manifest["partitions"][0]["records"][3]
    assert found[1]["timestamp"].replace(tzinfo=UTC).timestamp() * 1000 == expected[1]
    assert [header["key"] for header in found[1]["headers"]]
    assert found[0]["headers"] is None


@pytest.mark.slow
def test_cluster_and_files_give_the_same_rows(spark: Any, broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(200))
    put(broker.bootstrap, "t", 1, [*numbered(50), (b"k", None)])
    over_the_wire = spark.read.format("tailrace").options(**wire(broker)).load()
    from_files = spark.read.format("tailrace").options(path=broker.data, subscribe="t").load()
    rows = sorted(over_the_wire.collect(), key=lambda row: (row.partition, row.offset))
    assert rows == sorted(from_files.collect(), key=lambda row: (row.partition, row.offset))
    assert len(rows) == 251
    assert rows[-1].value is None


@pytest.mark.slow
def test_conditions_are_pushed_down_to_the_source(spark: Any, broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(100), timestamp=1_700_000_000_000)
    put(broker.bootstrap, "t", 1, numbered(100), timestamp=1_600_000_000_000)

    def asked(condition: str) -> Any:
        return spark.read.format("tailrace").options(**wire(broker), pushFilters="true").load().where(condition)

    late = asked(
        "topic = 't' and timestamp >= timestamp_millis(1700000000090) and timestamp < timestamp_millis(1700000000095)"
    )
    assert offsets(late) == span(0, 90, 95)
    assert late.rdd.getNumPartitions() == 1  # the other partition has no record at or after that time
    assert offsets(asked("partition = 1 and (offset in (3, 50) or offset = 70)")) == [(1, 3), (1, 50), (1, 70)]
    assert asked("partition = 0 and offset > 98").rdd.getNumPartitions() == 1


@pytest.mark.slow
def test_a_dataframe_can_be_queried_repeatedly(spark: Any, broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    frame = spark.read.format("tailrace").options(**wire(broker)).load()
    assert offsets(frame.where("offset < 3")) == span(0, 0, 3)
    assert offsets(frame.where("offset >= 18")) == span(0, 18, 20)
    assert frame.count() == 20
    assert frame.where("offset = 1").join(frame.where("offset = 2"), "partition").count() == 1


@pytest.mark.slow
@pytest.mark.xfail(
    strict=True, reason="Spark 4.3 keeps what a DataFrame's first query pushed down: see docs/reference/spark.md"
)
def test_a_dataframe_with_pushed_conditions_can_be_queried_again(spark: Any, broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    frame = spark.read.format("tailrace").options(**wire(broker), pushFilters="true").load()
    assert frame.where("offset < 3").count() == 3
    assert frame.count() == 20


@pytest.mark.slow
def test_conditions_that_cannot_be_pushed_down_are_applied_by_spark(spark: Any, broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        frame = spark.read.format("tailrace").options(**wire(broker), pushFilters="true").load()
        assert offsets(frame.where("offset < 3")) == span(0, 0, 3)
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


@pytest.mark.slow
def test_a_schema_chooses_columns_and_sql_reads_them(spark: Any, tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    frame = (
        spark.read.format("tailrace")
        .schema("value binary, compression string, leaderEpoch int")
        .options(path=str(path), subscribe="topic", maxBytesPerPartition="1k")
        .load()
    )
    frame.createOrReplaceTempView("codecs")
    counts = spark.sql("select compression, count(value) as n from codecs group by compression").collect()
    assert {row.compression for row in counts} == {"none", "gzip", "snappy", "lz4", "zstd"}


@pytest.mark.slow
def test_errors_are_one_sentence(spark: Any, broker: tailrace.Broker, tmp_path: Path) -> None:
    reader = spark.read.format("tailrace")
    with pytest.raises(Exception, match="WrongOption: there is no option startingoffset; did you mean startingOffsets"):
        reader.options(**wire(broker), startingOffset="earliest").load().count()
    with pytest.raises(Exception, match="UnknownLog: there is no topic 'nope'"):
        spark.read.format("tailrace").options(**{**wire(broker), "subscribe": "nope"}).load().count()
    path = golden("codecs").unpack(tmp_path / "golden")
    segment = min((path / "topic-0").glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"\xff")
    with pytest.raises(Exception, match=r"DamagedLog: topic-0 is damaged at offset \d+ or after it"):
        spark.read.format("tailrace").options(path=str(path), subscribe="topic").load().collect()


class Stream:
    """Run a query into a table in memory until it has processed all records."""

    def __init__(self, spark: Any, options: dict[str, str], checkpoint: Path) -> None:
        self._spark = spark
        self._options = options
        self._checkpoint = checkpoint

    def run(self) -> list[list[tuple[int, int]]]:
        """Return the rows of each batch."""
        seen: list[list[tuple[int, int]]] = []
        frame = self._spark.readStream.format("tailrace").options(**self._options).load()
        query = (
            frame.select("partition", "offset")
            .writeStream.foreachBatch(lambda batch, _: seen.append(offsets(batch)))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination(120)
            assert query.exception() is None, query.exception()
            assert not query.isActive
        finally:
            query.stop()
        return [batch for batch in seen if batch]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["wire", "files"])
def test_a_stream_resumes_at_its_checkpoint_after_a_restart(
    spark: Any, broker: tailrace.Broker, tmp_path: Path, transport: str
) -> None:
    where = wire(broker) if transport == "wire" else {"path": broker.data, "subscribe": "t"}
    options = {**where, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "20"}
    put(broker.bootstrap, "t", 0, numbered(30))
    put(broker.bootstrap, "t", 1, numbered(10))
    batches = Stream(spark, options, tmp_path / "checkpoint").run()
    assert sorted(chain.from_iterable(batches)) == [*span(0, 0, 30), *span(1, 0, 10)]
    assert [len(batch) for batch in batches] == [20, 20]
    put(broker.bootstrap, "t", 1, numbered(5, 10))
    assert Stream(spark, options, tmp_path / "checkpoint").run() == [span(1, 10, 15)]
    assert Stream(spark, options, tmp_path / "checkpoint").run() == []
    logged = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert json.loads(logged[-1].read_text().splitlines()[-1]) == {"t": {"0": 30, "1": 15}}


@pytest.mark.slow
def test_data_loss_ends_a_stream_with_one_sentence(spark: Any, broker: tailrace.Broker, tmp_path: Path) -> None:
    from tailrace.client.admin import delete_records
    from tailrace.client.cluster.cluster_client import ClusterClient
    from tailrace.model.ids import TopicPartition

    options = {**wire(broker), "startingOffsets": '{"t":{"0":2,"1":0}}'}
    put(broker.bootstrap, "t", 0, numbered(30))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_records(cluster, {TopicPartition("t", 0): 9})
    with pytest.raises(Exception, match="offsets 2 to 8 of t-0 are missing: the log starts at 9"):
        Stream(spark, options, tmp_path / "strict").run()
    lenient = {**options, "failOnDataLoss": "false"}
    assert Stream(spark, lenient, tmp_path / "lenient").run() == [span(0, 9, 30)]
