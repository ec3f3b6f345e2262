"""Cuts the indexes of a segment from which a view uses only the first offsets."""

from __future__ import annotations

import struct
from typing import Final

from tailrace.log.disk import file_names
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import NO_TIMESTAMP, Offset

# Of an entry: its size, the position of the offset in it, and the offset's format.
_RELATIVE: Final = ">i"
_ENTRIES: Final = {
    file_names.OFFSET_INDEX: (8, 0, _RELATIVE),
    file_names.TIME_INDEX: (12, 8, _RELATIVE),
    file_names.TRANSACTION_INDEX: (34, 18, ">q"),
}


def cut_index(kind: str, data: bytes, base: Offset, end: Offset) -> bytes:
    """Return the entries of an index that are about offsets before `end`."""
    size, offset_at, form = _ENTRIES[kind]
    limit = end - base if form == _RELATIVE else end
    kept = 0
    while kept + size <= len(data) and struct.unpack_from(form, data, kept + offset_at)[0] < limit:
        kept += size
    return data[:kept]


def last_time_entry(segment: Segment, data: bytes, end: Offset) -> bytes:
    """Return the entry that a cut time index still needs at its end: the largest timestamp before `end`.

    Return b"" if `data` has it.
    """
    largest, offset = NO_TIMESTAMP, segment.base_offset
    position = 0
    if data:
        largest, relative = struct.unpack_from(">qi", data, len(data) - 12)
        offset = segment.base_offset + relative
        position = segment.offset_index.lookup(offset).position
    before = largest
    for header in segment.headers(position):
        if header.base_offset >= end:
            break
        if header.max_timestamp > largest:
            largest, offset = header.max_timestamp, header.last_offset
    return struct.pack(">qi", largest, offset - segment.base_offset) if largest > before else b""
