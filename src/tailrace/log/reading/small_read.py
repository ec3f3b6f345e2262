"""A read that gets its bytes together with the lookup.

The position of a batch between two index entries is known only from headers, so a lookup reads some KB of the log
anyway. If they contain all bytes of the result, nothing more has to be read. This is the case for readers near the end
of the log and for small limits. Larger or unusual reads are left to `read_log`, which also reports errors.
"""

from __future__ import annotations

from typing import Final

from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment_list import SegmentList
from tailrace.model.ids import Offset
from tailrace.records.batch import HEADER_SIZE, MAGIC_POSITION, CorruptBatch
from tailrace.records.header_kernels import find_batch

SMALL_READ_BYTES: Final = 8_192  # two index intervals
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


def read_small(
    segments: SegmentList, start: Offset, max_bytes: int, bound: LogPosition, log_end_offset: Offset
) -> tuple[LogPosition, bytes] | None:
    """Return the position and the bytes that `read_log` would return from `start` on, at least one batch, up to a bound
    after `start`. Return None if `read_log` is needed."""
    found = segments.floor(start)
    if found is None:
        return None
    segment, following = found
    base_offset = segment.base_offset
    _, bound_base_offset, readable = bound
    if base_offset > bound_base_offset:
        return None
    if base_offset < bound_base_offset:
        readable = segment.size
    end = log_end_offset if following is None else following
    entry_offset, position = segment.offset_index.lookup(start)
    room = readable - position
    if room <= 0 or (room > SMALL_READ_BYTES and max_bytes > SMALL_READ_BYTES):
        return None
    data = segment.log.read(position, room if room < SMALL_READ_BYTES else SMALL_READ_BYTES)
    try:
        inside, size, first_offset, last_offset = find_batch(data, 0, len(data), start)
    except CorruptBatch:
        return None
    if (
        size < HEADER_SIZE
        or data[inside + MAGIC_POSITION] != 2
        or first_offset < base_offset
        or last_offset >= end
        or (not inside and position and last_offset > entry_offset)  # a wrong entry
    ):
        return None
    wanted = max_bytes if max_bytes > size else size
    stop = inside + wanted if wanted < room - inside else room
    if inside + size > len(data) or stop > len(data):
        return None
    return _new_tuple(LogPosition, (first_offset, base_offset, position + inside)), data[inside:stop]
