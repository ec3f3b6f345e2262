"""Lookup by timestamp: the first record at or after a time, exact for out-of-order timestamps and compressed batches.

    1. Take the first segment whose largest timestamp reaches the target.
    2. Its time index gives an offset before which everything is earlier. The offset index gives the position.
    3. Walk batch by batch from there. A batch whose largest timestamp is too early is skipped by its header.
    4. Search the first batch that reaches the target record by record. If its matching records are all before the log
       start, or if its header has a larger timestamp than its records, continue with the next batch.

"First" means by offset: among records at or after the target, the one with the smallest offset in that segment.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from tailrace.model.topic_config import LONG_MAX
from tailrace.records import kernels
from tailrace.records.batch import RecordBatch
from tailrace.records.legacy import iter_messages
from tailrace.records.record import record_portions

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_NEVER = -(2**63)  # earlier than any timestamp


class FoundOffset(NamedTuple):
    offset: Offset
    timestamp: int
    leader_epoch: LeaderEpoch | None


class BatchSearch(NamedTuple):
    """A batch, read from the log, that should contain the record. `find` uses nothing else and may run on any
    thread."""

    data: memoryview
    header: BatchHeader
    target: int
    start: Offset
    is_last: bool  # if the record is not in this batch, there is none

    @property
    def next_start(self) -> Offset:
        """The offset to continue at if the record is not in this batch."""
        return max(self.header.next_offset, self.start)

    def find(self) -> FoundOffset | None:
        """Return the first record at or after the time and at or after the start offset."""
        header, target, start = self.header, self.target, self.start
        epoch = header.leader_epoch if header.leader_epoch >= 0 else None
        if header.magic < 2:
            for message in iter_messages(self.data):
                if message.timestamp >= target and message.offset >= start:
                    return FoundOffset(message.offset, message.timestamp, epoch)
            return None
        batch = RecordBatch(self.data)
        # With log append time every record has the batch's timestamp, whatever its delta is.
        least = _NEVER if batch.is_log_append_time else target
        for portion, count in record_portions(batch):
            found = kernels.find_record(portion, count, batch.base_offset, batch.base_timestamp, start, least)
            if found is not None:
                return FoundOffset(found[0], batch.max_timestamp if batch.is_log_append_time else found[1], epoch)
        return None


def find_offset(log: PartitionLog, target: int) -> FoundOffset | None:
    """Return the result of ListOffsets for a timestamp or a special target, or None if no record is that late."""
    search = begin_search(log, target)
    while isinstance(search, BatchSearch):
        found = search.find()
        if found is not None or search.is_last:
            return found
        search = begin_search(log, target, search.next_start)
    return search


def begin_search(log: PartitionLog, target: int, start: Offset | None = None) -> FoundOffset | BatchSearch | None:
    """Return the result if the log's bounds and headers give it, or the batch that has to be searched."""
    if target == EARLIEST or (target == EARLIEST_LOCAL and not log.is_tiered):
        return _earliest(log)
    if target == LATEST:
        latest = log.epochs.latest
        return FoundOffset(log.log_end_offset, NO_TIMESTAMP, latest.epoch if latest else None)
    if target in (EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _tier_bound(log, target)
    if target == MAX_TIMESTAMP:
        return _search_largest(max(log.segments, key=lambda segment: segment.max_timestamp))
    for segment in log.segments:
        if segment.retention_timestamp_ms() >= target:
            return _search_segment(segment, target, log.log_start_offset if start is None else start)
    return None


def _earliest(log: PartitionLog) -> FoundOffset:
    earliest = log.epochs.earliest
    epoch = earliest.epoch if earliest and earliest.start_offset <= log.log_start_offset else None
    return FoundOffset(log.log_start_offset, NO_TIMESTAMP, epoch)


def _tier_bound(log: PartitionLog, target: int) -> FoundOffset | None:
    """Return the start of the local log, the last offset in the remote store, or the first one that is not there."""
    highest = log.highest_remote_offset
    if target == EARLIEST_LOCAL:
        offset = log.local_start_offset
    elif not log.is_tiered:
        return FoundOffset(-1, NO_TIMESTAMP, -1)
    elif target == LATEST_TIERED:
        offset = highest
    elif highest >= 0:
        offset = max(highest + 1, log.log_start_offset)
    elif log.local_start_offset == log.log_start_offset:
        return _earliest(log)
    else:
        offset = -1  # a new leader does not know yet what is in the remote store
    return FoundOffset(offset, NO_TIMESTAMP, -1 if offset < 0 else log.epochs.epoch_of(offset))


def find_in_segment(segment: Segment, target: int, start: Offset) -> FoundOffset | None:
    """Return the first record of a segment at or after a time and at or after an offset."""
    while (search := _search_segment(segment, target, start)) is not None:
        found = search.find()
        if found is not None or search.is_last:
            return found
        start = search.next_start
    return None


def _search_segment(segment: Segment, target: int, start: Offset) -> BatchSearch | None:
    for header in segment.headers(segment.timestamp_start(target, start).position):
        if header.max_timestamp >= target and header.last_offset >= start:
            return _search(segment, header, target, start, is_last=header.last_offset >= LONG_MAX)
    return None


def _search_largest(segment: Segment) -> BatchSearch | None:
    largest = segment.largest
    for header in segment.headers(segment.offset_start(largest.offset).position):
        if header.max_timestamp == largest.timestamp:
            if header.magic == 0:
                return None  # such a message has no timestamp, so it cannot have the largest
            return _search(segment, header, largest.timestamp, segment.base_offset, is_last=True)
    return None


def _search(segment: Segment, header: BatchHeader, target: int, start: Offset, *, is_last: bool) -> BatchSearch:
    data = memoryview(segment.log.read(header.position, header.size))
    return BatchSearch(data, header, target, start, is_last)
