"""Cuts: every offset in exactly one slice, slices of about the same number of bytes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.planning.planning import CutPoint, bytes_per_slice, cut_by_bytes, extents, split_by_count

T = TopicPartition("t", 0)


@dataclass
class FakeSegment:
    """A segment with one record of 100 bytes per offset, and an index entry every few records."""

    base_offset: int
    count: int
    every: int = 1

    @property
    def size(self) -> int:
        return self.count * 100

    def position_of(self, offset: int) -> int:
        if offset >= self.base_offset + self.count:
            return self.size
        entries = max(0, offset - self.base_offset) // self.every
        return entries * self.every * 100

    def cut_after(self, position: int) -> CutPoint | None:
        entry = -(-position // (100 * self.every)) * self.every
        return CutPoint(self.base_offset + entry + 1, entry * 100) if entry < self.count else None


def cut(start: int, end: int, segments: list[FakeSegment], max_bytes: int) -> list[tuple[int, int]]:
    wanted = OffsetRange(T, start, end)
    return [(one.start, one.end) for one in cut_by_bytes(wanted, extents(wanted, segments), max_bytes)]


def test_a_small_range_stays_whole() -> None:
    assert cut(0, 50, [FakeSegment(0, 50)], 10_000) == [(0, 50)]


def test_a_large_segment_is_cut_into_even_parts() -> None:
    slices = cut(0, 1000, [FakeSegment(0, 1000)], 30_000)
    assert len(slices) == 4
    assert max(end - start for start, end in slices) - min(end - start for start, end in slices) <= 3


def test_small_segments_are_read_together() -> None:
    slices = cut(0, 1000, [FakeSegment(base, 10) for base in range(0, 1000, 10)], 25_000)
    assert len(slices) == 4


def test_without_index_entries_a_segment_is_cut_by_offsets() -> None:
    slices = cut(0, 1000, [FakeSegment(0, 1000, every=10_000)], 30_000)
    assert slices == [(0, 250), (250, 500), (500, 750), (750, 1000)]
    assert cut(0, 1000, [FakeSegment(0, 1000, every=10_000)], 60_000) == [(0, 500), (500, 1000)]


def test_ranges_after_the_last_index_entry_are_cut_by_offsets() -> None:
    sealed, active = FakeSegment(0, 100), FakeSegment(100, 300, every=10_000)
    assert cut(0, 400, [sealed, active], 10_000) == [(0, 100), (100, 200), (200, 300), (300, 400)]


def test_only_segments_of_the_range_are_used() -> None:
    segments = [FakeSegment(base, 100) for base in (0, 100, 200, 300)]
    parts = extents(OffsetRange(T, 150, 250), segments)
    assert [(part.segment.base_offset, part.start, part.end) for part in parts] == [(100, 5000, 10_000), (200, 0, 5000)]


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    gap=st.integers(0, 30),
    every=st.integers(1, 20),
    max_bytes=st.integers(1, 9000),
    data=st.data(),
)
def test_every_offset_is_in_exactly_one_slice(counts, gap, every, max_bytes, data) -> None:
    segments, base = [], data.draw(st.integers(0, 20))
    for count in counts:
        segments.append(FakeSegment(base, count, every))
        base += count + gap
    start = data.draw(st.integers(segments[0].base_offset, base))
    end = data.draw(st.integers(start + 1, base + 1))
    slices = cut(start, end, segments, max_bytes)
    assert slices[0][0] == start
    assert slices[-1][1] == end
    assert [one[1] for one in slices[:-1]] == [one[0] for one in slices[1:]]
    assert all(one[0] < one[1] for one in slices)


@pytest.mark.parametrize(("total", "least", "expected"), [(1000, None, 128), (1000, 4, 128), (1000, 20, 50), (3, 9, 1)])
def test_a_minimum_number_of_slices_makes_them_smaller(total: int, least: int | None, expected: int) -> None:
    assert bytes_per_slice(total, 128, least) == expected


def test_slices_are_distributed_by_the_size_of_ranges() -> None:
    other = TopicPartition("t", 1)
    slices = split_by_count([OffsetRange(T, 0, 90), OffsetRange(other, 100, 110)], min_slices=10)
    assert [one.partition for one in slices].count(T) == 9
    assert slices[-1] == OffsetRange(other, 100, 110)
    assert [(one.start, one.end) for one in slices[:2]] == [(0, 10), (10, 20)]


def test_no_slice_has_more_offsets_than_allowed() -> None:
    slices = split_by_count([OffsetRange(T, 0, 100)], max_offsets=30)
    assert [one.size for one in slices] == [25, 25, 25, 25]


def test_there_is_at_least_one_slice_per_partition() -> None:
    ranges = [OffsetRange(TopicPartition("t", number), 0, 5) for number in range(4)]
    assert split_by_count(ranges, min_slices=2) == ranges
