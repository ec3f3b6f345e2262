"""Prunes the topics, partitions, offsets and times of a query by its conditions.

Spark applies every condition again to the rows. So pruning may only leave out rows that fail a condition, and an
unknown condition prunes nothing. Times are whole milliseconds, the precision of a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.planning.offset_ranges import OffsetRange

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Condition(NamedTuple):
    """A condition `column operator value`. All conditions of a query must hold."""

    column: str
    operator: str  # = > >= < <= in
    value: Any


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The values that can pass the conditions. All bounds are inclusive; None: no bound."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    min_offset: int = LONG_MIN
    max_offset: int = LONG_MAX
    min_timestamp: int = LONG_MIN
    max_timestamp: int = LONG_MAX

    def includes(self, partition: TopicPartition) -> bool:
        if self.topics is not None and partition.topic not in self.topics:
            return False
        return self.partitions is None or partition.partition in self.partitions

    def apply(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        """Return the ranges without partitions and offsets that cannot pass."""
        result = []
        for partition, start, end in ranges:
            start, end = max(start, self.min_offset), min(end, self.max_offset + 1)
            if start < end and self.includes(partition) and self.min_timestamp <= self.max_timestamp:
                result.append(OffsetRange(partition, start, end))
        return result


def narrowing(conditions: Iterable[Condition]) -> Narrowing:
    result = Narrowing()
    for condition in conditions:
        result = _narrowed(result, condition)
    return result


def _narrowed(before: Narrowing, condition: Condition) -> Narrowing:
    column, operator, value = condition
    if column == "topic":
        names = _chosen(operator, value, str)
        return before if names is None else replace(before, topics=_both(before.topics, names))
    if column == "partition" and (numbers := _chosen(operator, value, int)) is not None:
        return replace(before, partitions=_both(before.partitions, numbers))
    if column == "offset" and (bounds := _bounds(operator, value, _whole)) is not None:
        low, high = bounds
        return replace(before, min_offset=max(before.min_offset, low), max_offset=min(before.max_offset, high))
    if column == "timestamp" and (bounds := _bounds(operator, value, _milliseconds)) is not None:
        low, high = bounds
        return replace(
            before, min_timestamp=max(before.min_timestamp, low), max_timestamp=min(before.max_timestamp, high)
        )
    return before


def _chosen(operator: str, value: Any, kind: type) -> frozenset[Any] | None:
    values = [value] if operator == "=" else list(value) if operator == "in" else None
    if values is None or not all(isinstance(one, kind) for one in values):
        return None
    return frozenset(values)


def _both(before: frozenset[Any] | None, values: frozenset[Any]) -> frozenset[Any]:
    return values if before is None else before & values


def _bounds(operator: str, value: Any, measure: Any) -> tuple[int, int] | None:
    """Return the smallest and largest whole number that can pass; None for an unknown condition."""
    if operator == "in":
        found = [_bounds("=", one, measure) for one in value]
        if not found or None in found:
            return None
        return min(one[0] for one in found if one), max(one[1] for one in found if one)
    measured = measure(value)
    if measured is None:
        return None
    floor, ceiling = measured
    return {
        "=": (ceiling, floor),
        ">": (floor + 1, LONG_MAX),
        ">=": (ceiling, LONG_MAX),
        "<": (LONG_MIN, ceiling - 1),
        "<=": (LONG_MIN, floor),
    }.get(operator)


def _whole(value: Any) -> tuple[int, int] | None:
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else None


def _milliseconds(value: Any) -> tuple[int, int] | None:
    """Return a time in milliseconds, rounded down and rounded up."""
    if not isinstance(value, datetime):
        return None
    micros = (value.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    return micros // 1000, -(-micros // 1000)
