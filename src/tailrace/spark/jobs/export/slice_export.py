"""Tasks of an export without decoding: write a slice of the log to Parquet files, inside the worker.

Arrow batches go from the decoder to the file and never become rows of Spark. Every attempt of a task has a folder of
its own. The name of a file contains its range of offsets.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tailrace.spark.jobs.export.export_ledger import StagedFile
from tailrace.spark.jobs.place import as_job_errors
from tailrace.spark.source.arrow_batches import arrow_schema
from tailrace.spark.source.slice_reader import ReadPlan, read_slice
from tailrace.spark.source.table_columns import default_columns
from tailrace.spark.source.transports.transport import Slice

PARTITION_COLUMNS = ("topic", "date", "hour")
_COLUMNS = default_columns(headers=True, batch_facts=False)
# Values rarely repeat. A dictionary for them would cost half of the CPU time of writing, and make the file larger.
_DICTIONARIES = ["key", "topic", "partition", "timestampType", "headers.list.element.key", "date", "hour"]
_ENCODINGS = {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"}
_NULLABLE = tuple(column.name in ("key", "value", "headers") for column in _COLUMNS)


class SliceLayout(NamedTuple):
    """Folder, layout and compression for all slices of a commit."""

    staging: str
    partition_by: tuple[str, ...]
    compression: str
    fail_on_data_loss: bool


class SliceExport(NamedTuple):
    slice: Slice
    layout: SliceLayout


def export_slice(task: SliceExport) -> list[StagedFile]:
    (topic, number), start, end = task.slice.range
    attempt = uuid.uuid4().hex
    schema = arrow_schema(_COLUMNS, _NULLABLE)
    for name in task.layout.partition_by:
        if name != "topic":
            schema = schema.append(pa.field(name, pa.string() if name == "date" else pa.int32()))
    written: list[StagedFile] = []

    def note(file: Any) -> None:
        place = os.path.relpath(file.path, os.path.join(task.layout.staging, attempt))
        staged = os.path.join(attempt, place)
        written.append(StagedFile(staged, place, file.metadata.num_rows, file.size))

    with as_job_errors():
        ds.write_dataset(
            pa.RecordBatchReader.from_batches(schema, _batches(task, schema)),
            os.path.join(task.layout.staging, attempt),
            format="parquet",
            file_options=ds.ParquetFileFormat().make_write_options(
                compression=task.layout.compression, use_dictionary=_DICTIONARIES, column_encoding=_ENCODINGS
            ),
            partitioning=list(task.layout.partition_by) or None,
            partitioning_flavor="hive" if task.layout.partition_by else None,
            basename_template=f"{topic}-{number}-{start:020d}-{end:020d}-{{i}}.parquet",
            max_rows_per_group=256 * 1024,
            min_rows_per_group=64 * 1024,
            existing_data_behavior="overwrite_or_ignore",
            file_visitor=note,
        )
    return written


def _batches(task: SliceExport, schema: Any) -> Iterator[Any]:
    for batch in read_slice(task.slice, ReadPlan(_COLUMNS, _NULLABLE, task.layout.fail_on_data_loss)):
        columns = list(batch.columns)
        for name in task.layout.partition_by:
            if name != "topic":
                columns.append(_derived(name, batch.column("timestamp")))
        yield pa.RecordBatch.from_arrays(columns, schema=schema) if len(columns) > len(_COLUMNS) else batch


def _derived(name: str, timestamps: Any) -> Any:
    if name == "date":
        return pc.strftime(timestamps, format="%Y-%m-%d")
    return pc.cast(pc.hour(timestamps), pa.int32())


def check_partition_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without duplicates. Raise ValueError if an export cannot be partitioned by one of them."""
    for name in names:
        if name not in PARTITION_COLUMNS:
            raise ValueError(f"an export cannot be partitioned by {name!r}, only by {', '.join(PARTITION_COLUMNS)}")
    return tuple(dict.fromkeys(names))
