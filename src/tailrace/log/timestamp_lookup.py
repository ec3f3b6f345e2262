"""Lookup by timestamp: the first record at or after a time, exact for out-of-order timestamps and compressed batches.

    1. The first segment whose largest timestamp reaches the target.
    2. Its time index names an offset before which everything is earlier; the offset index turns that into a position.
    3. From there batch by batch: one whose largest timestamp is too early is passed over by its header alone.
    4. Inside the first that reaches it, record by record. If its matching records all lie before the log's start, or
       the header promised more than the records hold, go on with the next batch.

"First" is by offset: among records at or after the target, the one with the smallest offset in that segment.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.batch_reader import BatchHeader
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segment import Segment
from tailrace.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from tailrace.records import kernels
from tailrace.records.batch import RecordBatch
from tailrace.records.legacy import iter_messages
from tailrace.records.record import uncompressed_payload

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5

_NEVER = -(2**63)  # earlier than any timestamp


class FoundOffset(NamedTuple):
    offset: Offset
    timestamp: int
    leader_epoch: LeaderEpoch | None


def find_offset(log: PartitionLog, target: int) -> FoundOffset | None:
    """What ListOffsets answers for a timestamp or one of the special targets; None when nothing is that late."""
    if target in (EARLIEST, EARLIEST_LOCAL):
        earliest = log.epochs.earliest
        epoch = earliest.epoch if earliest and earliest.start_offset <= log.log_start_offset else None
        return FoundOffset(log.log_start_offset, NO_TIMESTAMP, epoch)
    if target == LATEST:
        latest = log.epochs.latest
        return FoundOffset(log.log_end_offset, NO_TIMESTAMP, latest.epoch if latest else None)
    if target == LATEST_TIERED:
        return FoundOffset(-1, NO_TIMESTAMP, -1)
    if target == MAX_TIMESTAMP:
        return _find_largest(max(log.segments, key=lambda segment: segment.max_timestamp))
    for segment in log.segments:
        if segment.retention_timestamp_ms() >= target:
            return find_in_segment(segment, target, log.log_start_offset)
    return None


def find_in_segment(segment: Segment, target: int, start: Offset) -> FoundOffset | None:
    """The first record of a segment at or after a time and at or after an offset."""
    for header in segment.headers(segment.timestamp_start(target, start).position):
        if header.max_timestamp >= target:
            found = _find_in_batch(segment, header, target, start)
            if found is not None:
                return found
    return None


def _find_largest(segment: Segment) -> FoundOffset | None:
    largest = segment.largest
    for header in segment.headers(segment.offset_start(largest.offset).position):
        if header.max_timestamp == largest.timestamp:
            if header.magic == 0:
                return None  # such a message has no timestamp, so none is the largest
            return _find_in_batch(segment, header, largest.timestamp, segment.base_offset)
    return None


def _find_in_batch(segment: Segment, header: BatchHeader, target: int, start: Offset) -> FoundOffset | None:
    data = memoryview(segment.log.read(header.position, header.size))
    epoch = header.leader_epoch if header.leader_epoch >= 0 else None
    if header.magic < 2:
        for message in iter_messages(data):
            if message.timestamp >= target and message.offset >= start:
                return FoundOffset(message.offset, message.timestamp, epoch)
        return None
    batch = RecordBatch(data)
    # With log append time every record has the batch's timestamp, whatever its own delta says.
    least = _NEVER if batch.is_log_append_time else target
    found = kernels.find_record(
        uncompressed_payload(batch), batch.record_count, batch.base_offset, batch.base_timestamp, start, least
    )
    if found is None:
        return None
    return FoundOffset(found[0], batch.max_timestamp if batch.is_log_append_time else found[1], epoch)
