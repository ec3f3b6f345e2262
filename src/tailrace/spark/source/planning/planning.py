"""Cutting offset ranges into tasks: by bytes where files tell about bytes, by offsets where only those are known.

Offsets say little about work: compaction and skew make them lie. A segment's sparse index knows the byte position of
every few kilobytes, so a range is cut at index entries into slices of about the same number of bytes, each of which
begins with a batch and is read by nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from tailrace.model.ids import Offset
from tailrace.spark.source.planning.offset_ranges import OffsetRange


class CutPoint(NamedTuple):
    """A place between two batches."""

    offset: Offset  # the first offset behind it
    position: int  # about where that is in the file


class SegmentMap(Protocol):
    """What planning has to know of a segment."""

    @property
    def base_offset(self) -> Offset: ...
    @property
    def size(self) -> int: ...
    def position_of(self, offset: Offset) -> int:
        """About where in the file an offset is: at its batch or a little before."""

    def cut_after(self, position: int) -> CutPoint | None:
        """The first place to cut at or past a byte position; None if there is none before the segment's end."""


class ByteExtent(NamedTuple):
    """The part of a segment that a range covers, in bytes."""

    segment: SegmentMap
    start: int
    end: int


def extents(wanted: OffsetRange, segments: Sequence[SegmentMap]) -> list[ByteExtent]:
    """Where the bytes of a range are; segments are in order, and the last one may go on past the range."""
    found = []
    for index, segment in enumerate(segments):
        next_base = segments[index + 1].base_offset if index + 1 < len(segments) else None
        if segment.base_offset >= wanted.end or (next_base is not None and next_base <= wanted.start):
            continue
        start = segment.position_of(wanted.start) if segment.base_offset < wanted.start else 0
        ends_inside = next_base is None or wanted.end < next_base
        end = segment.position_of(wanted.end) if ends_inside else segment.size
        found.append(ByteExtent(segment, start, max(start, end)))
    return found


def cut_by_bytes(wanted: OffsetRange, parts: Sequence[ByteExtent], max_bytes: int) -> list[OffsetRange]:
    """A range as slices of about the same size, of at most max_bytes as far as index entries allow.

    Where an index has no entries, as that of a segment which a broker is still writing may have none, a slice that is
    too large is cut by its offsets.
    """
    total = sum(part.end - part.start for part in parts)
    target = -(-total // max(1, -(-total // max_bytes)))  # no small rest at the end
    cuts: list[tuple[Offset, int]] = []  # where, and how many bytes lie before it
    held = 0
    for part in parts:
        if held >= target:
            cuts.append((part.segment.base_offset, held))
            held = 0
        position = part.start
        while held + part.end - position > target:
            found = part.segment.cut_after(position + target - held)
            if found is None or found.position >= part.end:
                break
            cuts.append((found.offset, held + found.position - position))
            held, position = 0, max(position + 1, found.position)
        held += part.end - position
    result: list[OffsetRange] = []
    start = wanted.start
    for end, size in [*cuts, (wanted.end, held)]:
        if start < end <= wanted.end:
            whole = OffsetRange(wanted.partition, start, end)
            pieces = min(whole.size, round(size / target)) if size >= 2 * target > 0 else 1
            result += _in_equal_parts(whole, pieces)
            start = end
    return result


def _in_equal_parts(wanted: OffsetRange, parts: int) -> list[OffsetRange]:
    edges = [wanted.start + wanted.size * number // parts for number in range(parts + 1)]
    return [OffsetRange(wanted.partition, start, end) for start, end in pairwise(edges)]


def bytes_per_slice(total: int, max_bytes: int, min_slices: int | None) -> int:
    """How large slices may be so that there are at least so many of them."""
    return max_bytes if not min_slices else max(1, min(max_bytes, total // min_slices))


def split_by_count(
    ranges: Sequence[OffsetRange], *, min_slices: int | None = None, max_offsets: int | None = None
) -> list[OffsetRange]:
    """Ranges in equal parts: at least min_slices in all, shared out by size; none of more than max_offsets."""
    total = sum(wanted.size for wanted in ranges)
    result: list[OffsetRange] = []
    for wanted in ranges:
        parts = 1
        if min_slices and min_slices > len(ranges):
            parts = max(1, round(wanted.size / total * min_slices))
        if max_offsets:
            parts = max(parts, -(-wanted.size // max_offsets))
        result += _in_equal_parts(wanted, min(parts, wanted.size))
    return result
