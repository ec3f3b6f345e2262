"""Tasks of an export: decode slices of the log, convert their records into rows, and write Parquet files.

Arrow batches go from the decoder to the file and never become rows of Spark. The files of every attempt of a task have
names of their own, so a repeated task cannot damage the files of the first attempt.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.packing import pack
from tailrace.spark.jobs.place import as_job_errors
from tailrace.spark.source.errors import OffsetRangeLost
from tailrace.spark.source.slice_reader import ReadPlan, read_slice
from tailrace.spark.source.transports.transport import Slice
from tailrace.spark.tables.files.parquet_files import DataFile, FileLayout, ParquetFiles
from tailrace.spark.tables.row_form import NULLABLE, SOURCE_COLUMNS, RowForm, record_table


class RecordsLost(JobError):
    """Retention deleted records between the planning of a round and its tasks."""


class WriteTask(NamedTuple):
    slices: tuple[Slice, ...]
    form: RowForm
    layout: FileLayout


class Written(NamedTuple):
    """The files of one task. `source_bytes` is the size of the decoded records in memory."""

    files: list[DataFile]
    records: int
    source_bytes: int
    broken: int = 0  # records that could not be decoded


def write_tasks(slices: Sequence[Slice], form: RowForm, layout: FileLayout, task_offsets: int) -> list[WriteTask]:
    """Return tasks of at most `task_offsets` offsets each; several small slices share a task, and so its files."""
    packed = pack(slices, lambda slice_: slice_.range.size, task_offsets)
    return [WriteTask(tuple(some), form, layout) for some in packed]


def write_slices(task: WriteTask) -> Written:
    """Write the records of the slices of a task to Parquet files."""
    with as_job_errors():
        return _write(task)


def _write(task: WriteTask) -> Written:
    plan = ReadPlan(SOURCE_COLUMNS, NULLABLE)
    files = ParquetFiles(task.layout, task.form.schema, uuid.uuid4().hex)
    records = source_bytes = 0
    broken_before = task.form.broken
    try:
        for slice_ in task.slices:
            for batch in read_slice(slice_, plan):
                source_bytes += batch.nbytes
                records += batch.num_rows
                files.write(task.form.convert(record_table(batch)))
        return Written(files.close(), records, source_bytes, task.form.broken - broken_before)
    except OffsetRangeLost as error:
        files.abandon()
        raise records_lost(error) from None
    except BaseException:
        files.abandon()
        raise


def records_lost(error: OffsetRangeLost) -> RecordsLost:
    return RecordsLost(
        f"{str(error).partition(';')[0]}; --allow-loss exports the remaining records and counts the lost offsets"
    )
