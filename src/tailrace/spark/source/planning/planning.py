"""Cuts offset ranges into tasks: by bytes for files, by offsets for a cluster.

The number of offsets is a poor measure of work, because of compaction and records of different size. A segment's sparse
index has a byte position for every few kilobytes. So a range is cut at index entries into slices with a similar number
of bytes. Each slice starts with a batch, and slices do not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from tailrace.model.ids import Offset
from tailrace.spark.source.planning.offset_ranges import OffsetRange


class CutPoint(NamedTuple):
    """A position between two batches."""

    offset: Offset  # the first offset after it
    position: int  # its approximate position in the file


class SegmentMap(Protocol):
    """The properties of a segment that planning needs."""

    @property
    def base_offset(self) -> Offset: ...
    @property
    def size(self) -> int: ...
    def position_of(self, offset: Offset) -> int:
        """Return the approximate position of an offset: at its batch or a little before."""

    def cut_after(self, position: int) -> CutPoint | None:
        """Return the first cut point at or after a position; None if the segment has none."""


class ByteExtent(NamedTuple):
    """The bytes of a segment that a range covers."""

    segment: SegmentMap
    start: int
    end: int


def extents(wanted: OffsetRange, segments: Sequence[SegmentMap]) -> list[ByteExtent]:
    """Return the extents of a range. The segments are in order; the last one may extend beyond the range."""
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
    """Cut a range into slices of similar size, of at most max_bytes as far as index entries allow.

    If an index has too few entries, as that of an active segment may, a slice that is too large is cut by offsets.
    """
    total = sum(part.end - part.start for part in parts)
    target = -(-total // max(1, -(-total // max_bytes)))  # equal parts, without a small rest at the end
    cuts: list[tuple[Offset, int]] = []  # offset, and bytes since the previous cut
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
    """Return the maximum size of slices so that there are at least min_slices."""
    return max_bytes if not min_slices else max(1, min(max_bytes, total // min_slices))


def split_by_count(
    ranges: Sequence[OffsetRange], *, min_slices: int | None = None, max_offsets: int | None = None
) -> list[OffsetRange]:
    """Split ranges into parts of at most max_offsets, and at least min_slices parts in total. A larger range gets more
    parts, and the parts of a range are equal."""
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
