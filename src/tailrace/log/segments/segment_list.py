"""SegmentList: segments ordered by base offset. The last one is active, the others are sealed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset


class SegmentList:
    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.base_offset)
        self.base_offsets = [segment.base_offset for segment in self._segments]  # read only for others
        self._sealed_bytes: int | None = None  # of the sealed segments, whose sizes do not change; None: not computed

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

    def get(self, base_offset: Offset) -> Segment | None:
        slot = bisect_left(self.base_offsets, base_offset)
        found = slot < len(self._segments) and self.base_offsets[slot] == base_offset
        return self._segments[slot] if found else None

    def floor_slot(self, offset: Offset) -> int:
        """Return the slot of the last segment that starts at or below `offset`, or -1 if all start later."""
        return bisect_right(self.base_offsets, offset) - 1

    def floor(self, offset: Offset) -> tuple[Segment, Offset | None] | None:
        """Return the segment at `floor_slot` and the base offset of the next one, None if all start later."""
        base_offsets = self.base_offsets
        following = bisect_right(base_offsets, offset)
        if not following:
            return None
        return self._segments[following - 1], base_offsets[following] if following < len(base_offsets) else None

    def tail(self, slot: int) -> list[Segment]:
        """Return the segments from a slot on."""
        return self._segments[slot:]

    def after(self, base_offset: Offset) -> list[Segment]:
        """Return the segments that start after `base_offset`."""
        return self._segments[bisect_right(self.base_offsets, base_offset) :]

    def between(self, start: Offset, end: Offset) -> list[Segment]:
        """Return the segments that may have offsets in [start, end): the floor of `start` and those that start below
        `end`."""
        if start >= end:
            return []
        return self._segments[max(self.floor_slot(start), 0) : bisect_left(self.base_offsets, end)]

    def add(self, segment: Segment) -> None:
        """Add a segment. It replaces a segment with the same base offset."""
        slot = bisect_left(self.base_offsets, segment.base_offset)
        if slot < len(self._segments) and self.base_offsets[slot] == segment.base_offset:
            self._segments[slot] = segment
            self._sealed_bytes = None
        else:
            if slot < len(self._segments):
                self._sealed_bytes = None
            elif self._sealed_bytes is not None and slot:
                self._sealed_bytes += self.active.size
            self._segments.insert(slot, segment)
            self.base_offsets.insert(slot, segment.base_offset)

    def remove(self, base_offset: Offset) -> None:
        slot = bisect_left(self.base_offsets, base_offset)
        assert self.base_offsets[slot] == base_offset, f"no segment starts at {base_offset}"
        if self._sealed_bytes is not None and len(self._segments) > 1:
            # The segment before the active one becomes active.
            self._sealed_bytes -= self._segments[slot if slot < len(self._segments) - 1 else slot - 1].size
        del self._segments[slot], self.base_offsets[slot]

    def aborted_transactions(self, base_offset: Offset, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap [start, end), from the index of this segment and of
        later ones."""
        found: list[AbortedTransaction] = []
        for segment in self.tail(bisect_left(self.base_offsets, base_offset)):
            some, is_complete = segment.transaction_index.collect(start, end)
            found += some
            if is_complete:
                break
        return found

    def total_size(self) -> int:
        """Return the bytes of all segments, without a walk over the segments if possible."""
        if not self._segments:
            return 0
        if self._sealed_bytes is None:
            self._sealed_bytes = sum(segment.size for segment in self.sealed)
        return self._sealed_bytes + self.active.size
