"""The tasks of a round of a table with one row for each key.

`spread` decodes slices, keeps the newest record of each key, and yields records by bucket. `rewrite_bucket` writes all
rows of a bucket: the newest records of the round, and the rows of its files whose keys the round does not have. The
records of a bucket in one round are in memory; its files are read piece by piece.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import as_job_errors
from tailrace.spark.source.errors import OffsetRangeLost
from tailrace.spark.source.slice_reader import ReadPlan, read_slice
from tailrace.spark.source.transports.transport import Slice
from tailrace.spark.tables.files.parquet_files import FileLayout, ParquetFiles
from tailrace.spark.tables.formats.stored_file import Rows
from tailrace.spark.tables.latest.newest import KEY, buckets_of, newest, without_keys
from tailrace.spark.tables.row_form import NULLABLE, SOURCE_COLUMNS, RowForm, record_table
from tailrace.spark.tables.write_task import Written, records_lost

BUCKET: Final = "_bucket"
_HELD_BYTES: Final = 64 * 1024 * 1024
_ROWS: Final = 16 * 1024


class SpreadTask(NamedTuple):
    slices: tuple[Slice, ...]
    buckets: int


@dataclass(frozen=True, slots=True)
class BucketPlan:
    form: RowForm
    layout: FileLayout
    schema: Any  # of all columns that the table has
    stored: Mapping[int, Sequence[Rows]]  # the files of each bucket


class _Newest:
    """Collects records, and keeps the newest of each key."""

    def __init__(self) -> None:
        self._held: list[Any] = []
        self._limit = _HELD_BYTES

    def add(self, records: Any) -> None:
        self._held.append(records)
        if sum(one.nbytes for one in self._held) > self._limit:
            self._held = [self.records()]
            self._limit = 2 * self._held[0].nbytes + _HELD_BYTES

    def records(self) -> Any:
        return newest(pa.concat_tables(self._held))

    def __bool__(self) -> bool:
        return bool(self._held)


def spread(task: SpreadTask) -> Iterator[tuple[int, int, bytes]]:
    """Yield buckets with records of the slices, as bytes of Arrow."""
    with as_job_errors():
        kept = _Newest()
        for records in _records(task.slices):
            kept.add(records)
        if kept:
            yield from _by_bucket(kept.records(), task.buckets)


def _records(slices: Sequence[Slice]) -> Iterator[Any]:
    plan = ReadPlan(SOURCE_COLUMNS, NULLABLE)
    try:
        for slice_ in slices:
            for batch in read_slice(slice_, plan):
                records = record_table(batch)
                _check_keys(records)
                yield records
    except OffsetRangeLost as error:
        raise records_lost(error) from None


def _check_keys(records: Any) -> None:
    if records.column("key").null_count:
        row = records.filter(pc.is_null(records.column("key"))).slice(0, 1).to_pylist()[0]
        raise JobError(
            f"the record at offset {row['offset']} of {row['topic']}-{row['partition']} has no key: "
            "--latest needs a key in every record"
        )


def _by_bucket(records: Any, count: int) -> Iterator[tuple[int, int, bytes]]:
    buckets = buckets_of(records.column("key"), count)
    for number in pc.unique(buckets).to_pylist():
        yield number, 0, _to_bytes(records.filter(pc.equal(buckets, number)))


def rewrite_bucket(plan: BucketPlan, bucket: int, found: Iterator[bytes]) -> Written:
    """Write the files of a bucket."""
    kept = _Newest()
    for data in found:
        kept.add(_from_bytes(data))
    fresh = kept.records()
    files = ParquetFiles(plan.layout, plan.schema, uuid.uuid4().hex)
    broken_before = plan.form.broken
    rows = fresh.filter(pc.is_valid(fresh.column("value")))  # a record without value deletes its key
    try:
        for batch in rows.to_batches(_ROWS):
            files.write(_shaped(plan.form.convert(pa.Table.from_batches([batch])), plan.schema, bucket))
        keys = fresh.select(list(KEY))
        for file in plan.stored.get(bucket, ()):
            for stored in file.read():
                files.write(without_keys(_shaped(stored, plan.schema, bucket), keys))
        return Written(files.close(), fresh.num_rows, fresh.nbytes, plan.form.broken - broken_before)
    except BaseException:
        files.abandon()
        raise


def _shaped(rows: Any, schema: Any, bucket: int) -> Any:
    """Return rows with all columns of the table; a column that they do not have is null."""
    columns = []
    for field in schema:
        if field.name == BUCKET:
            columns.append(pa.repeat(pa.scalar(bucket, field.type), len(rows)))
        elif field.name in rows.column_names:
            columns.append(rows.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _to_bytes(records: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(records)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _from_bytes(data: bytes) -> Any:
    return pa.ipc.open_stream(data).read_all()
