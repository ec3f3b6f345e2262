"""Checks of an index against its log. An index has no checksum. If the two disagree, the log is right.

An offset index entry has the position of a batch, and an offset that no record of the batch exceeds. (Apache Kafka
before 4.0 stored the last offset of several batches appended together.) If the batch at the position reaches further,
or there is none, the entry is wrong. A walk from it could skip records, so the index is no longer used. It stays
unchanged on disk: `tailrace log repair` and the next recovery rebuild it.

A time index entry has the largest timestamp so far and the offset of its batch. Retention uses the last entry.
"""

from __future__ import annotations

import logging

from tailrace.log.disk.files import File
from tailrace.log.segments.batch_walk import BatchHeader, find_header, walk_headers
from tailrace.log.segments.indexes.offset_index import OffsetIndex, OffsetPosition
from tailrace.log.segments.indexes.time_index import TimeIndex, TimestampOffset
from tailrace.model.ids import NO_TIMESTAMP, Offset
from tailrace.model.topic_config import LONG_MAX
from tailrace.records.batch import CorruptBatch

_log = logging.getLogger(__name__)


def find_batch(
    log: File, index: OffsetIndex, size: int, offset: Offset, probes: list[int] | None = None
) -> BatchHeader | None:
    """Return the first batch that reaches `offset`: from the index entry below it, header by header."""
    entry = index.lookup(offset, probes)
    if entry.position:
        try:
            if 0 < entry.position < size:
                header = find_header(log, entry.position, size, offset)
                if header is None or header.position > entry.position or header.last_offset <= entry.offset:
                    return header
        except CorruptBatch:
            pass  # the log or the index is wrong: the walk from the start shows which
        header = find_header(log, 0, size, offset)
        _distrust(index, entry)
        return header
    return find_header(log, 0, size, offset)


def trusted(log: File, index: OffsetIndex, size: int, entry: OffsetPosition) -> OffsetPosition:
    """Return an entry to walk from, or the log's start if the entry is wrong."""
    if holds(log, size, entry):
        return entry
    _distrust(index, entry)
    return OffsetPosition(index.base_offset, 0)


def holds(log: File, size: int, entry: OffsetPosition) -> bool:
    """Return True if there is a batch at the position of an entry, and it does not exceed the entry's offset."""
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
        index.distrust()


def offset_after(log: File, index: OffsetIndex, size: int) -> Offset:
    """Return the offset after the last one of a log file, found from the last index entry on.

    Raises CorruptBatch if offsets do not grow.
    """
    last = trusted(log, index, size, index.last())
    next_offset = index.base_offset
    for header in walk_headers(log, last.position, size):
        if not max(next_offset, header.base_offset) <= header.last_offset < LONG_MAX:
            reason = f"offset {header.last_offset}, but the next must be at least {next_offset}"
            raise CorruptBatch(reason, path=log.path, position=header.position)
        next_offset = header.next_offset
    return next_offset


def largest_timestamp(log: File, index: OffsetIndex, times: TimeIndex, size: int) -> TimestampOffset:
    """Return the last time index entry if the log agrees, otherwise the largest timestamp of the log."""
    last = times.last()
    if not times.count or _has_timestamp(log, index, size, last):
        return last
    _log.warning("%s is wrong about timestamp %d and is not used", times.file.path, last.timestamp)
    return _largest_from(log, size, 0, TimestampOffset(NO_TIMESTAMP, index.base_offset))


def largest_after_cut(log: File, index: OffsetIndex, times: TimeIndex, size: int) -> TimestampOffset:
    """Return the largest timestamp of a log file that was truncated with its indexes: the last entry's or a
    later one."""
    last = times.last()
    return _largest_from(log, size, trusted(log, index, size, index.lookup(last.offset)).position, last)


def _largest_from(log: File, size: int, start: int, largest: TimestampOffset) -> TimestampOffset:
    for header in walk_headers(log, start, size):
        if header.max_timestamp > largest.timestamp:
            largest = TimestampOffset(header.max_timestamp, header.last_offset)
    return largest


def _has_timestamp(log: File, index: OffsetIndex, size: int, entry: TimestampOffset) -> bool:
    header = find_batch(log, index, size, entry.offset)
    return header is not None and header.max_timestamp == entry.timestamp


def index_problem(log: File, index: OffsetIndex, times: TimeIndex, size: int) -> str | None:
    """Return why nothing may be appended to the indexes of a log file: a last entry that the log contradicts."""
    entry = index.last()
    if not holds(log, size, entry):
        return f"{index.file.path}: its last entry ({entry.offset} → {entry.position}) is wrong"
    last = times.last()
    if times.count and not _has_timestamp(log, index, size, last):
        return f"{times.file.path}: its last entry ({last.timestamp} → {last.offset}) is wrong"
    return None
