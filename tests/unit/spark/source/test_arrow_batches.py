# ruff: noqa: E402
"""Arrow batches hold the rows, in the types that Spark expects for the schema."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from tailrace.records.batch import Codec
from tailrace.spark.source import data_source
from tailrace.spark.source.batch_reader import FilteringLimitedLogReader, FilteringLogReader
from tailrace.spark.source.data_source import LogDataSource
from tailrace.spark.source.errors import WrongOption
from tests.support.batches import batch
from tests.support.golden import golden
from tests.support.source_rows import read
from tests.support.spark_types import default_struct, struct_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def struct(options: dict[str, str]) -> StructType:
    return default_struct(headers="includeHeaders" in options, batch_facts="includeBatchFacts" in options)


def batches(schema: StructType | None = None, **options: str) -> list[Any]:
    reader = LogDataSource(options).reader(schema or struct(options))
    return [found for task in reader.partitions() for found in reader.read(task)]


def test_arrow_types_are_those_that_spark_expects(tmp_path: Path) -> None:
    path = str(golden("codecs").unpack(tmp_path))
    options = {"path": path, "subscribe": "topic", "includeHeaders": "true", "includeBatchFacts": "true"}
    schema = struct(options)
    for found in batches(**options):
        found.validate(full=True)
        assert found.schema == to_arrow_schema(schema, timezone="UTC")


@pytest.mark.parametrize("name", ["codecs", "transactions", "message-format-v0", "log-append-time"])
def test_arrow_rows_have_the_values_of_the_columns(name: str, tmp_path: Path) -> None:
    path = str(golden(name).unpack(tmp_path))
    found = pa.Table.from_batches(batches(path=path, subscribe="topic", includeHeaders="true")).to_pylist()
    assert found == [
        {
            "key": row["KEY"],
            "value": row["VALUE"],
            "topic": "topic",
            "partition": 0,
            "offset": row["OFFSET"],
            "timestamp": EPOCH + timedelta(microseconds=row["TIMESTAMP"]),
            "timestampType": row["TIMESTAMP_TYPE"],
            "headers": row["HEADERS"] and [{"key": key, "value": value} for key, value in row["HEADERS"]],
        }
        for row in read({"path": path, "subscribe": "topic"})
    ]


def test_batch_facts_are_columns(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    plain = batch(b"a", b"b", leader_epoch=4)
    packed = batch(
        b"c", producer_id=9, producer_epoch=2, sequence=7, transactional=True, codec=Codec.ZSTD, base_offset=2
    )
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(plain + packed)
    table = pa.Table.from_batches(batches(path=str(tmp_path), subscribe="t", includeBatchFacts="true"))
    rows = table.select(table.column_names[7:]).to_pylist()
    assert rows[0] == {
        "leaderEpoch": 4,
        "producerId": -1,
        "producerEpoch": -1,
        "baseSequence": -1,
        "batchBaseOffset": 0,
        "batchSize": len(plain),
        "compression": "none",
        "isTransactional": False,
    }
    assert rows[1] == rows[0]
    assert (rows[2]["producerId"], rows[2]["producerEpoch"], rows[2]["baseSequence"]) == (9, 2, 7)
    assert (rows[2]["compression"], rows[2]["isTransactional"], rows[2]["batchBaseOffset"]) == ("zstd", True, 2)


def test_a_schema_selects_and_orders_the_columns(tmp_path: Path) -> None:
    path = str(golden("codecs").unpack(tmp_path))
    found = batches(struct_of(["offset", "value"]), path=path, subscribe="topic")
    assert found[0].schema.names == ["offset", "value"]
    with pytest.raises(WrongOption, match="there is no column 'val'"):
        batches(StructType([StructField("val", BinaryType())]), path=path, subscribe="topic")


def test_a_query_without_offsets_has_one_empty_task(tmp_path: Path) -> None:
    path = str(golden("codecs").unpack(tmp_path))
    chosen = {"path": path, "subscribe": "topic", "endingOffsets": '{"topic":{"0":0}}'}
    assert batches(**chosen) == []


def test_conditions_are_used_and_returned_to_spark(tmp_path: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan, Not, StringContains

    path = str(golden("codecs").unpack(tmp_path))
    source = LogDataSource({"path": path, "subscribe": "topic"})
    plain = source.reader(default_struct())
    reader = FilteringLogReader(plain._options, plain._plan)  # type: ignore[attr-defined]
    conditions = [
        GreaterThanOrEqual(("offset",), 10),
        LessThan(("offset",), 20),
        In(("partition",), (0, 7)),
        EqualTo(("topic",), "topic"),
        Not(EqualTo(("offset",), 15)),
        StringContains(("topic",), "opi"),
    ]
    assert list(reader.pushFilters(conditions)) == conditions
    (task,) = reader.partitions()
    assert (task.slice.range.start, task.slice.range.end) == (10, 20)  # type: ignore[attr-defined]


class _SparkWithLimits:
    """The class of readers in a Spark that passes limits to Python sources."""

    def pushLimit(self, limit: int) -> bool:  # noqa: N802
        raise NotImplementedError


def limited_source(tmp_path: Path) -> LogDataSource:
    path = str(golden("codecs").unpack(tmp_path))
    return LogDataSource({"path": path, "subscribe": "topic", "pushLimit": "true", "maxBytesPerPartition": "1k"})


def test_a_limit_ends_each_task_after_enough_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = limited_source(tmp_path)
    everything = source.reader(default_struct())
    before = [sum(map(len, everything.read(task))) for task in everything.partitions()]
    assert len(before) > 1
    assert max(before) > 3
    monkeypatch.setattr(data_source, "DataSourceReader", _SparkWithLimits)
    reader = source.reader(default_struct())
    assert reader.pushLimit(3) is True  # type: ignore[attr-defined]
    after = [sum(map(len, reader.read(task))) for task in reader.partitions()]
    # A task may return the rest of a batch of records, but it returns no fewer rows than the limit if it has them.
    assert all(few >= min(3, rows) for few, rows in zip(after, before, strict=True))
    assert sum(after) < sum(before)


def test_a_query_with_conditions_gets_no_limit(tmp_path: Path) -> None:
    from pyspark.sql.datasource import EqualTo

    plain = limited_source(tmp_path).reader(default_struct())
    reader = FilteringLimitedLogReader(plain._options, plain._plan)  # type: ignore[attr-defined]
    assert list(reader.pushFilters([EqualTo(("offset",), 1)]))
    assert reader.pushLimit(3) is False
    assert FilteringLimitedLogReader(plain._options, plain._plan).pushLimit(3) is True  # type: ignore[attr-defined]


def test_a_spark_without_limits_logs_that_the_option_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(data_source, "DataSourceReader", object)
    reader = limited_source(tmp_path).reader(default_struct())
    assert not hasattr(reader, "pushLimit")
    assert "pushLimit has no effect: this release of Spark" in caplog.text
