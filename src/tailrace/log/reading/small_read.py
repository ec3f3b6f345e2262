"""A read whose bytes come with the look for them.

Where a batch lies between two index entries only its header tells, so a lookup reads some KB of the log anyway. Where
all that may be handed over is among them, as for a reader near the end of the log or with small limits, there is
nothing left to read. Whatever is larger, or not as it should be, is left to `read_log`, which says what it is.
"""

from __future__ import annotations

from typing import Final

from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment_list import SegmentList
from tailrace.model.ids import Offset
from tailrace.records.batch import HEADER_SIZE, MAGIC_POSITION, CorruptBatch
from tailrace.records.kernels import find_batch

SMALL_READ_BYTES: Final = 8_192  # two index intervals
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


def read_small(
    segments: SegmentList, start: Offset, max_bytes: int, bound: LogPosition, log_end_offset: Offset
) -> tuple[LogPosition, bytes] | None:
    """Return the position and the bytes that `read_log` would hand over from `start` on, at least one batch, up to a
    bound further up. Return None if only `read_log` can tell."""
    slot = segments.floor_slot(start)
    if slot < 0:
        return None
    segment = segments[slot]
    base_offset = segment.base_offset
    if base_offset < bound.segment_base_offset:
        readable, end = segment.size, segments[slot + 1].base_offset
    elif base_offset == bound.segment_base_offset:
        readable, end = bound.position, log_end_offset
        if slot + 1 < len(segments):
            end = segments[slot + 1].base_offset
    else:
        return None
    entry_offset, position = segment.offset_index.lookup(start)
    room = readable - position
    if room <= 0 or (room > SMALL_READ_BYTES and max_bytes > SMALL_READ_BYTES):
        return None
    data = segment.log.read(position, min(room, SMALL_READ_BYTES))
    try:
        inside, size, first_offset, last_offset = find_batch(data, 0, len(data), start)
    except CorruptBatch:
        return None
    if (
        size < HEADER_SIZE
        or data[inside + MAGIC_POSITION] != 2
        or first_offset < base_offset
        or last_offset >= end
        or (not inside and position and last_offset > entry_offset)  # an entry that is wrong
    ):
        return None
    stop = inside + min(max(max_bytes, size), room - inside)
    if inside + size > len(data) or stop > len(data):
        return None
    return _new_tuple(LogPosition, (first_offset, base_offset, position + inside)), data[inside:stop]
