"""Finds the next batch after damage, so that the rest of a segment can be shown or checked.

The checksum covers neither a batch's length nor its offset, so one flipped bit can hide all following batches from a
walk. A v2 batch can be recognized, though: by the magic byte, a plausible next offset, a length that fits, and a
matching checksum. Messages of formats 0 and 1 have too few marks. For them an index entry is used.
"""

from __future__ import annotations

from tailrace.log.disk.files import File
from tailrace.log.segments.batch_walk import parse_header
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX
from tailrace.records.batch import HEADER_SIZE, MAGIC_POSITION, CorruptBatch, RecordBatch

_WINDOW = 1024 * 1024
_FARTHEST = 64 * 1024 * 1024  # a search beyond the largest allowed batch is useless
_MAGIC = b"\x02"


def next_position(file: File, damaged: int, end: int, next_offset: Offset, index: OffsetIndex | None) -> int | None:
    """Return the position after the damage at `damaged` where reading can continue, or None if there is none before
    `end`."""
    found = _next_batch(file, damaged + 1, end, next_offset)
    if index is not None and index.count:
        entry = index.upper_bound(damaged + 1)
        if entry is not None and entry.position < end and (found is None or entry.position < found):
            return entry.position
    return found


def _next_batch(file: File, start: int, end: int, next_offset: Offset) -> int | None:
    """Return the first position from `start` on where a whole v2 batch with a matching checksum begins."""
    stop = min(end, start + _FARTHEST)
    while start < stop:
        window = file.read(start, min(_WINDOW + HEADER_SIZE, end - start))
        at = window.find(_MAGIC, MAGIC_POSITION)
        while at >= 0 and at - MAGIC_POSITION < _WINDOW:
            position = start + at - MAGIC_POSITION
            if _is_batch(file, window, at - MAGIC_POSITION, position, end, next_offset):
                return position
            at = window.find(_MAGIC, at + 1)
        start += _WINDOW
    return None


def _is_batch(file: File, window: bytes, at: int, position: int, end: int, next_offset: Offset) -> bool:
    if len(window) - at < HEADER_SIZE:
        return False
    try:
        header = parse_header(window, at, position, end - position)
        if header.magic != 2 or not 0 <= header.base_offset - next_offset <= INT_MAX:
            return False
        RecordBatch(memoryview(file.read(position, header.size))).check()
    except CorruptBatch:
        return False
    return True
