"""SegmentList: segments ordered by base offset; the last one is active, the others are sealed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset


class SegmentList:
    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.base_offset)
        self._base_offsets = [segment.base_offset for segment in self._segments]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    def __contains__(self, base_offset: Offset) -> bool:
        return self.get(base_offset) is not None

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def sealed(self) -> list[Segment]:
        return self._segments[:-1]

    @property
    def base_offsets(self) -> list[Offset]:
        return self._base_offsets

    def get(self, base_offset: Offset) -> Segment | None:
        slot = bisect_left(self._base_offsets, base_offset)
        found = slot < len(self._segments) and self._base_offsets[slot] == base_offset
        return self._segments[slot] if found else None

    def floor_slot(self, offset: Offset) -> int:
        """The slot of the last segment that starts at or below `offset`; -1 if all start later."""
        return bisect_right(self._base_offsets, offset) - 1

    def tail(self, slot: int) -> list[Segment]:
        """The segments from a slot on."""
        return self._segments[slot:]

    def after(self, base_offset: Offset) -> list[Segment]:
        """The segments that start past `base_offset`."""
        return self._segments[bisect_right(self._base_offsets, base_offset) :]

    def between(self, start: Offset, end: Offset) -> list[Segment]:
        """The segments that may hold offsets in [start, end): the floor of `start` and those that start below `end`."""
        if start >= end:
            return []
        return self._segments[max(self.floor_slot(start), 0) : bisect_left(self._base_offsets, end)]

    def add(self, segment: Segment) -> None:
        """Put a segment in, in place of one with the same base offset."""
        slot = bisect_left(self._base_offsets, segment.base_offset)
        if slot < len(self._segments) and self._base_offsets[slot] == segment.base_offset:
            self._segments[slot] = segment
        else:
            self._segments.insert(slot, segment)
            self._base_offsets.insert(slot, segment.base_offset)

    def remove(self, base_offset: Offset) -> None:
        slot = bisect_left(self._base_offsets, base_offset)
        assert self._base_offsets[slot] == base_offset, f"no segment starts at {base_offset}"
        del self._segments[slot], self._base_offsets[slot]

    def aborted_transactions(self, base_offset: Offset, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """The aborted transactions that overlap [start, end): in the index of this segment and of later ones."""
        found: list[AbortedTransaction] = []
        for segment in self.tail(bisect_left(self._base_offsets, base_offset)):
            some, is_complete = segment.transaction_index.collect(start, end)
            found += some
            if is_complete:
                break
        return found

    def total_size(self) -> int:
        return sum(segment.size for segment in self._segments)
