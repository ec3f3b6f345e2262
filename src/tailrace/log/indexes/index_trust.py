"""How far an index is believed. It has no checksum of its own, but the log beside it has the last word.

An offset index entry names a batch by its position and an offset that no record of it exceeds (Apache Kafka before
4.0 noted the last offset of several batches appended together). Where the batch found there reaches further, or there
is none, the entry is wrong, a walk from it could pass over records, and the index is not used any more. It stays as it
is on disk: `tailrace log repair` and the next recovery make it again.

A time index entry names the largest timestamp so far and the batch that has it. Retention goes by the last one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tailrace.log.batch_reader import BatchHeader, find_header, walk_headers
from tailrace.log.disk.files import File
from tailrace.log.indexes.offset_index import OffsetIndex, OffsetPosition
from tailrace.log.indexes.time_index import TimestampOffset
from tailrace.model.ids import NO_TIMESTAMP, Offset
from tailrace.model.topic_config import LONG_MAX
from tailrace.records.batch import CorruptBatch

if TYPE_CHECKING:
    from tailrace.log.segment import Segment

_log = logging.getLogger(__name__)


def find_batch(
    log: File, index: OffsetIndex, size: int, offset: Offset, probes: list[int] | None = None
) -> BatchHeader | None:
    """The first batch that reaches `offset`: from the index entry below it header by header."""
    entry = index.lookup(offset, probes)
    if entry.position:
        try:
            if 0 < entry.position < size:
                header = find_header(log, entry.position, size, offset)
                if header is None or header.position > entry.position or header.last_offset <= entry.offset:
                    return header
        except CorruptBatch:
            pass  # of the log or of the index: a walk from the start will tell
        header = find_header(log, 0, size, offset)
        _distrust(index, entry)
        return header
    return find_header(log, 0, size, offset)


def trusted(log: File, index: OffsetIndex, size: int, entry: OffsetPosition) -> OffsetPosition:
    """An entry to walk from; the log's start if the entry is wrong."""
    if holds(log, size, entry):
        return entry
    _distrust(index, entry)
    return OffsetPosition(index.base_offset, 0)


def holds(log: File, size: int, entry: OffsetPosition) -> bool:
    """Whether there is a batch where an entry says, and not past the offset that it says."""
    if entry.position == 0:
        return True
    if not 0 < entry.position < size:
        return False
    try:
        return next(walk_headers(log, entry.position, size)).last_offset <= entry.offset
    except CorruptBatch:
        return False


def _distrust(index: OffsetIndex, entry: OffsetPosition) -> None:
    if index.is_trusted:
        _log.warning("%s is wrong about offset %d and is not used", index.file.path, entry.offset)
        index.is_trusted = False


def offset_after(segment: Segment) -> Offset:
    """One past the last offset of a segment, found from the last index entry on; offsets that do not grow are wrong."""
    last = trusted(segment.log, segment.offset_index, segment.size, segment.offset_index.last())
    next_offset = segment.base_offset
    for header in segment.headers(last.position):
        if not max(next_offset, header.base_offset) <= header.last_offset < LONG_MAX:
            reason = f"offset {header.last_offset} where {next_offset} or more is next"
            raise CorruptBatch(reason, path=segment.log.path, position=header.position)
        next_offset = header.next_offset
    return next_offset


def largest_timestamp(segment: Segment) -> TimestampOffset:
    """What the last time index entry says, if the log agrees; otherwise what the log says."""
    last = segment.time_index.last()
    if not segment.time_index.count or _has_timestamp(segment, last):
        return last
    _log.warning("%s is wrong about timestamp %d and is not used", segment.time_index.file.path, last.timestamp)
    return _walk(segment, 0, TimestampOffset(NO_TIMESTAMP, segment.base_offset))


def largest_after_cut(segment: Segment) -> TimestampOffset:
    """The largest timestamp of a segment that was cut, as its indexes were: the last entry's, or one after it."""
    last = segment.time_index.last()
    return _walk(segment, segment.offset_start(last.offset).position, last)


def _walk(segment: Segment, start: int, largest: TimestampOffset) -> TimestampOffset:
    for header in segment.headers(start):
        if header.max_timestamp > largest.timestamp:
            largest = TimestampOffset(header.max_timestamp, header.last_offset)
    return largest


def _has_timestamp(segment: Segment, entry: TimestampOffset) -> bool:
    header = segment.find(entry.offset)
    return header is not None and header.max_timestamp == entry.timestamp


def index_problem(segment: Segment) -> str | None:
    """Why the indexes of a segment must not be appended to: a last entry that its log contradicts."""
    entry = segment.offset_index.last()
    if not holds(segment.log, segment.size, entry):
        return f"{segment.offset_index.file.path}: its last entry ({entry.offset} → {entry.position}) is wrong"
    last = segment.time_index.last()
    if segment.time_index.count and not _has_timestamp(segment, last):
        return f"{segment.time_index.file.path}: its last entry ({last.timestamp} → {last.offset}) is wrong"
    return None
