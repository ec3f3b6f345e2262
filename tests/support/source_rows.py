"""The Spark source without Spark: plans a query, reads its slices, and returns rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tailrace.records.columnar import columns as kernel
from tailrace.records.columnar.columns import RecordColumns
from tailrace.spark.source.options import read_options
from tailrace.spark.source.planning.pruning import Condition, narrowing
from tailrace.spark.source.planning.query_plan import planned_ranges
from tailrace.spark.source.transports.transport import Slice, Transport, open_transport
from tests.support.column_rows import rows

COLUMNS = kernel.OFFSET | kernel.TIMESTAMP | kernel.TIMESTAMP_TYPE | kernel.KEY | kernel.VALUE | kernel.HEADERS


def plan(
    options: dict[str, str], conditions: Iterable[Condition] = (), transport: Transport | None = None
) -> list[Any]:
    parsed = read_options(options, is_stream=False)
    used = transport or open_transport(parsed)
    try:
        return list(used.slices(planned_ranges(used, parsed, narrowing(conditions)), parsed))
    finally:
        used.close()


def read_slices(slices: Iterable[Slice], wanted: int = COLUMNS, **bounds: Any) -> list[dict[str, Any]]:
    fail_on_data_loss = bounds.pop("fail_on_data_loss", True)
    found = []
    for slice_ in slices:
        columns = RecordColumns(wanted, slice_.range.start, slice_.range.end, **bounds)
        for _ in slice_.feed(columns, fail_on_data_loss=fail_on_data_loss):
            found += _rows(columns, slice_)
            columns.reset()
        found += _rows(columns, slice_)
    return found


def _rows(columns: RecordColumns, slice_: Slice) -> list[dict[str, Any]]:
    topic, partition = slice_.range.partition
    return [{"TOPIC": topic, "PARTITION": partition, **row} for row in rows(kernel, columns)]


def read(options: dict[str, str], conditions: Iterable[Condition] = ()) -> list[dict[str, Any]]:
    limits = narrowing(conditions)
    return read_slices(
        plan(options, conditions),
        fail_on_data_loss=read_options(options, is_stream=False).fail_on_data_loss,
        min_timestamp=limits.min_timestamp,
        max_timestamp=limits.max_timestamp,
    )


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return [row["OFFSET"] for row in found]
