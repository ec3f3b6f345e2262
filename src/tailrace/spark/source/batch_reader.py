"""LogReader: a batch query over the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from tailrace.spark.source.errors import message_only
from tailrace.spark.source.options import ReadOptions
from tailrace.spark.source.planning.pruning import Condition, narrowing
from tailrace.spark.source.planning.query_plan import planned_ranges
from tailrace.spark.source.slice_reader import ReadPlan, read_slice
from tailrace.spark.source.transports.transport import Slice, open_transport

_OPERATORS: dict[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    In: "in",
}


class SliceTask(InputPartition):
    """The slice for one task; None: nothing to read."""

    def __init__(self, slice_: Slice | None) -> None:
        self.slice = slice_


def read_task(partition: InputPartition, plan: ReadPlan) -> Iterator[Any]:
    assert isinstance(partition, SliceTask)
    if partition.slice is not None:
        with message_only():
            yield from read_slice(partition.slice, plan)


class LogReader(DataSourceReader):
    def __init__(self, options: ReadOptions, plan: ReadPlan) -> None:
        self._options = options
        self._plan = plan

    @message_only()
    def partitions(self) -> list[InputPartition]:
        transport = open_transport(self._options)
        try:
            ranges = planned_ranges(transport, self._options, self._plan.narrowing)
            tasks = [SliceTask(found) for found in transport.slices(ranges, self._options)]
        finally:
            transport.close()
        # For an empty list, Spark would create a partition of its own.
        return list(tasks) or [SliceTask(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_task(partition, self._plan)


class FilteringLogReader(LogReader):
    """A LogReader that uses the query's conditions to read less.

    It returns every condition to Spark, so that Spark applies all of them to the rows.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._plan = replace(self._plan, narrowing=narrowing(_conditions(filters)))
        return filters


class LimitedLogReader(LogReader):
    """A LogReader that reads at most the query's limit from each slice, in a Spark that has `pushLimit`.

    Spark applies the limit to the rows of all slices. A slice cannot be shortened by offsets, because compaction and
    transactions leave gaps; so its task stops after enough rows.
    """

    def pushLimit(self, limit: int) -> bool:  # noqa: N802
        if limit < 1:
            return False
        self._plan = replace(self._plan, limit=limit)
        return True


class FilteringLimitedLogReader(FilteringLogReader, LimitedLogReader):
    """A FilteringLogReader with a limit. Spark has to apply conditions first, so a query with any keeps all rows."""

    _has_conditions = False

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._has_conditions = self._has_conditions or bool(filters)
        return super().pushFilters(filters)

    def pushLimit(self, limit: int) -> bool:  # noqa: N802
        return not self._has_conditions and super().pushLimit(limit)


def _conditions(filters: Iterable[Filter]) -> Iterator[Condition]:
    for one in filters:
        operator = _OPERATORS.get(type(one))
        path: tuple[str, ...] = getattr(one, "attribute", ())
        if operator is not None and len(path) == 1:
            yield Condition(path[0], operator, getattr(one, "value"))  # noqa: B009
