"""Starting and ending points are resolved to offsets; missing partitions and offsets outside a log are errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.errors import OffsetRangeLost, UnknownLog, WrongOption
from tailrace.spark.source.planning.data_loss import readable_ranges
from tailrace.spark.source.planning.offset_ranges import (
    AT_EARLIEST,
    AT_LATEST,
    OffsetRange,
    Point,
    offsets_from_json,
    offsets_to_json,
    resolve_end,
    resolve_start,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class FixedBounds:
    """The bounds of two logs: offsets 10 to 19 at times 100 to 109, and an empty one at 5."""

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: {A: 10, B: 5}[partition] for partition in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: {A: 20, B: 5}[partition] for partition in partitions}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {one: max(10, time - 90) if one == A and time < 110 else None for one, time in times.items()}


def starts(point: Point, no_match_is_latest: bool = False) -> dict[TopicPartition, int]:
    return resolve_start(point, [A, B], FixedBounds(), no_match_is_latest=no_match_is_latest)


def ranges(start: dict, end: dict, fail: bool = True) -> list[OffsetRange]:
    return readable_ranges(start, end, FixedBounds(), fail_on_data_loss=fail)


def test_earliest_and_latest_are_resolved_to_offsets() -> None:
    assert starts(AT_EARLIEST) == {A: 10, B: 5}
    assert resolve_end(AT_LATEST, [A, B], FixedBounds()) == {A: 20, B: 5}


def test_offsets_may_be_numbers_or_earliest_and_latest() -> None:
    assert starts(Point(offsets={A: 12, B: -2})) == {A: 12, B: 5}
    assert starts(Point(offsets={A: -1, B: -2})) == {A: 20, B: 5}


def test_a_missing_partition_in_the_offsets_is_refused() -> None:
    with pytest.raises(WrongOption, match="startingOffsets has no offset for t-1"):
        starts(Point(offsets={A: 12}))
    with pytest.raises(WrongOption, match="startingOffsetsByTimestamp has no offset for t-0"):
        starts(Point(times={B: 12}))


def test_an_additional_partition_in_the_offsets_is_refused() -> None:
    with pytest.raises(UnknownLog, match="endingOffsets has t-7, which is not among the selected partitions"):
        resolve_end(Point(offsets={A: 1, B: 1, TopicPartition("t", 7): 3}), [A, B], FixedBounds())


def test_a_time_without_a_record_is_an_error_or_latest_by_strategy() -> None:
    with pytest.raises(WrongOption, match="no record of t-1 is at or after 105 ms"):
        starts(Point(time=105))
    assert starts(Point(time=105), no_match_is_latest=True) == {A: 15, B: 5}
    assert resolve_end(Point(time=105), [A, B], FixedBounds()) == {A: 15, B: 5}


def test_empty_ranges_are_omitted() -> None:
    assert ranges({A: 10, B: 5}, {A: 20, B: 5}) == [OffsetRange(A, 10, 20)]
    assert ranges({A: 15}, {A: 12}) == []


def test_a_start_before_the_log_start_is_data_loss() -> None:
    with pytest.raises(OffsetRangeLost, match="offsets 3 to 9 of t-0 are missing: the log starts at 10"):
        ranges({A: 3}, {A: 20})
    assert ranges({A: 3}, {A: 20}, fail=False) == [OffsetRange(A, 10, 20)]
    assert ranges({A: 3}, {A: 3}) == []


def test_an_end_after_the_log_end_is_data_loss() -> None:
    with pytest.raises(OffsetRangeLost, match="offsets 20 to 29 of t-0 are missing: the log ends at 20"):
        ranges({A: 12}, {A: 30})
    assert ranges({A: 12}, {A: 30}, fail=False) == [OffsetRange(A, 12, 20)]


def test_a_start_after_the_log_end_is_data_loss() -> None:
    with pytest.raises(OffsetRangeLost, match="offsets 20 to 24 of t-0 are missing: the log ends at 20"):
        ranges({A: 25}, {A: 20})
    assert ranges({A: 25}, {A: 20}, fail=False) == []


def test_offsets_survive_the_checkpoint() -> None:
    offsets = {TopicPartition("b", 11): 4, TopicPartition("b", 2): 2**60, TopicPartition("a", 0): 0}
    written = offsets_to_json(offsets)
    assert written == {"a": {"0": 0}, "b": {"2": 2**60, "11": 4}}
    assert offsets_from_json(written) == offsets
