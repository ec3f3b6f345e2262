"""Reads a slice of the log as Arrow batches in a task. Control, aborted and unselected records are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tailrace.records.columnar.columns import RecordColumns
from tailrace.spark.source.arrow_batches import arrow_batch, arrow_schema
from tailrace.spark.source.planning.pruning import Narrowing
from tailrace.spark.source.table_columns import Column, wanted_bits
from tailrace.spark.source.transports.transport import Slice
from tailrace.spark.worker_process import freeze_imports

_MAX_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The common settings of all tasks of a query."""

    columns: tuple[Column, ...]
    nullable: tuple[bool, ...]
    fail_on_data_loss: bool = True
    narrowing: Narrowing = field(default_factory=Narrowing)
    limit: int | None = None  # rows that are enough from each slice


def read_slice(slice_: Slice, plan: ReadPlan) -> Iterator[Any]:
    """Yield the records of the slice as Arrow batches of some megabytes."""
    freeze_imports()
    wanted = slice_.range
    columns = RecordColumns(
        wanted_bits(plan.columns),
        wanted.start,
        wanted.end,
        min_timestamp=plan.narrowing.min_timestamp,
        max_timestamp=plan.narrowing.max_timestamp,
        max_rows=_MAX_ROWS if plan.limit is None else min(plan.limit, _MAX_ROWS),
        allocate=pa.allocate_buffer,
    )
    schema = arrow_schema(plan.columns, plan.nullable)
    found = 0
    for _ in slice_.feed(columns, fail_on_data_loss=plan.fail_on_data_loss):
        found += columns.rows
        yield arrow_batch(columns, plan.columns, schema, wanted.partition)
        columns.reset()
        if plan.limit is not None and found >= plan.limit:
            return
    if columns.rows:
        yield arrow_batch(columns, plan.columns, schema, wanted.partition)
