"""Resolves starting and ending points to offsets of each partition.

A point is earliest, latest, an offset for each partition, a time for each, or one time for all. A `Bounds` resolves it.
The rules are those of Spark's Kafka source, with one difference: for an offset outside the log Spark's source would
wait or read nothing, while this one raises an error.

Offsets have Spark's JSON form: {"orders": {"0": 23, "1": -2}}, with -2 for earliest and -1 for latest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.source.errors import UnknownLog, WrongOption

LATEST = -1
EARLIEST = -2

Offsets = Mapping[TopicPartition, Offset]


class OffsetRange(NamedTuple):
    """The offsets from start up to, but not including, end."""

    partition: TopicPartition
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Point:
    """A starting or ending point: one field; if none is set, `place` (earliest or latest).

    A group or a table is a starting point only, and `starting_offsets.py` replaces it with offsets.
    """

    place: int = LATEST
    offsets: Offsets | None = None
    times: Mapping[TopicPartition, int] | None = None
    time: int | None = None
    group: str | None = None  # the committed offsets of a consumer group
    table: str | None = None  # the offsets up to which a table has been exported

    @property
    def is_by_time(self) -> bool:
        return self.times is not None or self.time is not None

    @property
    def is_named(self) -> bool:
        return self.group is not None or self.table is not None


AT_EARLIEST = Point(EARLIEST)
AT_LATEST = Point(LATEST)


class Bounds(Protocol):
    """Start and end offsets of logs, and lookups by time."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]: ...

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the last readable offsets for the isolation level."""

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset | None]:
        """Return the offset of the first record at or after a time in milliseconds; None if there is none."""


# --- JSON -----------------------------------------------------------------------------------------------------------


def parse_offsets(text: str, option: str) -> dict[TopicPartition, int]:
    """Parse {"topic": {"partition": number}}. Raise WrongOption if it has another form."""
    return _numbers(_parsed(text, option), option)


def parse_partitions(text: str, option: str) -> list[TopicPartition]:
    """Parse {"topic": [partition, …]}. Raise WrongOption if it has another form."""
    found = []
    for topic, numbers in _parsed(text, option).items():
        if not isinstance(numbers, list) or not all(_is_number(number) and number >= 0 for number in numbers):
            raise WrongOption(f'{option} is {text!r}; it must be {{"topic": [0, 1]}}')
        found += [TopicPartition(topic, number) for number in numbers]
    return sorted(set(found))


def _parsed(text: str, option: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise WrongOption(f"{option} is {text!r}; it must be a JSON object of topics")
    return parsed


def _numbers(parsed: Mapping[str, Any], option: str) -> dict[TopicPartition, int]:
    found = {}
    for topic, numbers in parsed.items():
        if not isinstance(numbers, dict):
            raise WrongOption(f'{option} has {numbers!r} for {topic}; it must be {{"topic": {{"0": 23}}}}')
        for partition, number in numbers.items():
            if not str(partition).isdecimal() or not _is_number(number):
                raise WrongOption(
                    f"{option} has {partition!r}: {number!r} for {topic}; it must be a partition and a number"
                )
            found[TopicPartition(topic, int(partition))] = number
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def offsets_to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return offsets in the form of a stream's checkpoint, in order."""
    result: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        result.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return result


def offsets_from_json(parsed: Mapping[str, Any]) -> dict[TopicPartition, Offset]:
    return _numbers(parsed, "the checkpoint")


# --- points to offsets ----------------------------------------------------------------------------------------------


def resolve_start(
    point: Point, partitions: list[TopicPartition], bounds: Bounds, *, no_match_is_latest: bool
) -> dict[TopicPartition, Offset]:
    if not point.is_by_time:
        return _resolve_places(point, partitions, bounds, "startingOffsets")
    times = _times(point, partitions, "startingOffsetsByTimestamp")
    found = bounds.at_times(times)
    missing = [partition for partition in partitions if found[partition] is None]
    if missing and not no_match_is_latest:
        raise WrongOption(
            f"no record of {missing[0]} is at or after {times[missing[0]]} ms; "
            'set startingOffsetsByTimestampStrategy to "latest" to start at the end of such partitions'
        )
    return _filled(found, missing, bounds)


def resolve_end(point: Point, partitions: list[TopicPartition], bounds: Bounds) -> dict[TopicPartition, Offset]:
    if not point.is_by_time:
        return _resolve_places(point, partitions, bounds, "endingOffsets")
    found = bounds.at_times(_times(point, partitions, "endingOffsetsByTimestamp"))
    return _filled(found, [partition for partition in partitions if found[partition] is None], bounds)


def _filled(
    found: Mapping[TopicPartition, Offset | None], missing: list[TopicPartition], bounds: Bounds
) -> dict[TopicPartition, Offset]:
    ends = bounds.latest(missing) if missing else {}
    return {partition: ends[partition] if offset is None else offset for partition, offset in found.items()}


def _times(point: Point, partitions: list[TopicPartition], option: str) -> dict[TopicPartition, int]:
    if point.time is not None:
        return dict.fromkeys(partitions, point.time)
    assert point.times is not None
    _check_complete(point.times, partitions, option)
    return dict(point.times)


def _resolve_places(
    point: Point, partitions: list[TopicPartition], bounds: Bounds, option: str
) -> dict[TopicPartition, Offset]:
    asked = dict.fromkeys(partitions, point.place) if point.offsets is None else dict(point.offsets)
    if point.offsets is not None:
        _check_complete(asked, partitions, option)
    result = {partition: offset for partition, offset in asked.items() if offset >= 0}
    first = [partition for partition, offset in asked.items() if offset == EARLIEST]
    last = [partition for partition, offset in asked.items() if offset == LATEST]
    return {**result, **(bounds.earliest(first) if first else {}), **(bounds.latest(last) if last else {})}


def _check_complete(given: Mapping[TopicPartition, int], partitions: list[TopicPartition], option: str) -> None:
    """Raise an error if `given` lacks a partition, or has one that is not read."""
    missing = sorted(set(partitions) - set(given))
    if missing:
        raise WrongOption(
            f"{option} has no offset for {_listed(missing)}: give one for every partition (-2 is earliest)"
        )
    extra = sorted(set(given) - set(partitions))
    if extra:
        raise UnknownLog(f"{option} has {_listed(extra)}, which is not among the selected partitions")


def _listed(partitions: list[TopicPartition]) -> str:
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    return ", ".join(map(str, partitions[:3])) + more
