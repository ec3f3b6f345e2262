"""Rows become Parquet files of a target size, one for each partition of the table."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.tables.files import parquet_files
from tailrace.spark.tables.files.parquet_files import DataFile, FileLayout, ParquetFiles, split
from tailrace.spark.tables.files.storage import IcebergStorage, delete_folder
from tailrace.spark.tables.formats.partitioning import check_partitions, delta_columns, file_columns, iceberg_fields
from tailrace.spark.tables.row_form import RECORD_SCHEMA

DAY_MS = 86_400_000


def records(count: int, *, first: int = 0, partition: int = 0, size: int = 10, step_ms: int = 0) -> Any:
    columns = {
        "key": [b"k%d" % number for number in range(count)],
        "value": [None if number % 7 == 6 else bytes([number % 251]) * size for number in range(count)],
        "headers": [None] * count,
        "topic": ["t"] * count,
        "partition": [partition] * count,
        "offset": list(range(first, first + count)),
        "timestamp": [(1_700_000_000_000 + number * step_ms) * 1000 for number in range(count)],
        "timestamp_type": [0] * count,
    }
    return pa.table(columns, schema=RECORD_SCHEMA)


def layout(path: Path, **more: Any) -> FileLayout:
    return FileLayout(IcebergStorage(f"file://{path}", {}), "data/round", **more)


def written(path: Path, tables: list[Any], **more: Any) -> list[DataFile]:
    files = ParquetFiles(layout(path, **more), RECORD_SCHEMA, "task")
    for table in tables:
        files.write(table)
    return files.close()


def test_files_have_the_reported_size_and_records(tmp_path: Path) -> None:
    found = written(tmp_path, [records(100), records(50, first=100)])
    assert [(file.records, file.size) for file in found] == [(150, (tmp_path / found[0].path).stat().st_size)]
    assert pq.read_table(tmp_path / found[0].path).column("offset").to_pylist() == list(range(150))


def test_a_file_is_closed_at_its_target_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 10)
    found = written(
        tmp_path, [records(10, first=10 * n, size=500) for n in range(8)], target_bytes=9000, compression="none"
    )
    assert len(found) == 4
    assert [file.records for file in found] == [20, 20, 20, 20]


def test_rows_are_divided_by_date_hour_and_column(tmp_path: Path) -> None:
    found = written(
        tmp_path, [records(48, step_ms=3_600_000, partition=n) for n in range(2)], partition_by=("date", "partition")
    )
    assert sum(file.records for file in found) == 96
    assert {file.partition for file in found} == {
        (("date", date(2023, 11, day)), ("partition", n)) for day in (14, 15, 16) for n in range(2)
    }
    assert all("/date=2023-11-1" in file.path for file in found)


def test_each_row_goes_to_one_partition_with_its_values() -> None:
    table = pa.concat_tables([records(30, step_ms=3_600_000), records(5, partition=3)])
    parts = list(split(table, ("date", "hour", "partition")))
    assert sum(part.num_rows for _, part in parts) == 35
    for key, part in parts:
        values = dict(key)
        for row in part.to_pylist():
            assert (row["timestamp"].date(), row["timestamp"].hour, row["partition"]) == (
                values["date"],
                values["hour"],
                values["partition"],
            )
    assert len(parts) == len({key for key, _ in parts}) == 31


def test_a_null_is_a_partition_of_its_own() -> None:
    table = pa.table({"a": [1, None, 1, None]})
    assert [(key, part.num_rows) for key, part in split(table, ("a",))] == [((("a", 1),), 2), ((("a", None),), 2)]


def test_open_files_and_their_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "OPEN_FILES", 3)
    monkeypatch.setattr(parquet_files, "HELD_BYTES", 1000)
    files = ParquetFiles(layout(tmp_path, partition_by=("partition",)), RECORD_SCHEMA, "task")
    for number in range(20):
        files.write(records(10, first=number, partition=number % 5))
        assert len(files._open) <= 3
        assert files._held <= 1000
    assert sum(file.records for file in files.close()) == 200


def test_statistics_have_bounds_and_null_counts(tmp_path: Path) -> None:
    found = json.loads(written(tmp_path, [records(14, step_ms=1)])[0].statistics)
    assert found["numRecords"] == 14
    assert (found["minValues"]["offset"], found["maxValues"]["offset"]) == (0, 13)
    assert found["maxValues"]["timestamp"] == "2023-11-14T22:13:20.013Z"
    assert found["nullCount"]["value"] == 2
    assert "value" not in found["minValues"]


def test_values_of_any_name_are_safe_in_a_path(tmp_path: Path) -> None:
    table = records(1).set_column(3, RECORD_SCHEMA.field("topic"), pa.array(["../a b%/ü"]))
    found = written(tmp_path, [table], partition_by=("topic",))
    assert found[0].path == "data/round/topic=.._a_b___/task-0000.parquet"


def test_delete_folder_keeps_the_named_files(tmp_path: Path) -> None:
    found = written(tmp_path, [records(3), records(3, partition=1)], partition_by=("partition",))
    storage = IcebergStorage(f"file://{tmp_path}", {})
    assert delete_folder(storage, "data/round", keep=frozenset({found[0].path})) == 1
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.parquet")] == [found[0].path]
    assert delete_folder(storage, "data/none") == 0


def test_partition_columns_are_checked() -> None:
    assert check_partitions(["date", "topic", "date"], RECORD_SCHEMA) == ("date", "topic")
    for name in ("nonsense", "key", "value", "headers", "timestamp"):
        with pytest.raises(JobError, match=f"cannot be partitioned by '{name}', only by date, hour, topic"):
            check_partitions([name], RECORD_SCHEMA)


def test_an_hour_includes_its_date() -> None:
    for names in (["hour"], ["date", "hour"]):
        fields = iceberg_fields(names)
        assert [name for _, _, name in fields] == ["hour"]
        assert file_columns([(source, unit) for source, unit, _ in fields]) == ("date", "hour")
        schema, columns = delta_columns(names, RECORD_SCHEMA)
        assert columns == ("date", "hour")
        assert schema.names[-2:] == ["date", "hour"]
