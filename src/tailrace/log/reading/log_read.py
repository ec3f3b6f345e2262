"""Reading a log: finds the file and the bytes with the records from an offset on, up to a bound."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.position import FileSlice, LogPosition
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Isolation, Watermarks
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.batch import CorruptBatch


class LogRead(NamedTuple):
    """The bytes of a read and the position of the first one."""

    position: LogPosition
    slice: FileSlice | None = None
    first_entry_incomplete: bool = False
    aborted: list[AbortedTransaction] | None = None

    @property
    def size(self) -> int:
        return len(self.slice) if self.slice else 0


class OffsetOutOfRange(KafkaError):
    """A read or a move outside the log. The error has the log's bounds."""

    def __init__(self, partition: TopicPartition, offset: Offset, start: Offset, end: Offset) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} of {partition} is outside the log, {start} to {end}"
        )
        self.log_start_offset = start
        self.log_end_offset = end


class OffsetInRemoteStore(KafkaError):
    """A read of an offset that is only in the remote store. A follower starts at the first local offset instead."""

    def __init__(self, partition: TopicPartition, offset: Offset, local_start: Offset) -> None:
        super().__init__(
            ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
            f"offset {offset} of {partition} is in the remote store; the local log starts at {local_start}",
        )


def read_log(
    partition: TopicPartition,
    segments: SegmentList,
    marks: Watermarks,
    start: Offset,
    max_bytes: int,
    isolation: Isolation,
    at_least_one: bool,
) -> LogRead:
    """Find the bytes from `start` on. `marks` is a snapshot, which a later append does not change."""
    committed = isolation is Isolation.READ_COMMITTED
    bound = marks.bound(isolation)
    slot = segments.floor_slot(start)
    if start < marks.log_start_offset or start > marks.log_end.offset:
        raise OffsetOutOfRange(partition, start, marks.log_start_offset, marks.log_end.offset)
    if slot < 0:
        raise OffsetInRemoteStore(partition, start, segments.first.base_offset)
    if start >= bound.offset:
        place = bound if start == bound.offset else locate(segments, marks, start)
        return LogRead(place, aborted=[] if committed else None)
    count = len(segments)
    while slot < count:
        segment = segments[slot]
        slot += 1
        end = segments[slot].base_offset if slot < count else marks.log_end.offset
        readable = _end_position(segment, bound)
        result = segment.read(start, max_bytes, readable, end=end, at_least_one=at_least_one)
        if result is not None:
            place, found, incomplete = result
            aborted = _aborted(segments, marks, start, segment, place, found) if committed else None
            return LogRead(place, found, incomplete, aborted)
    return LogRead(marks.log_end)  # compaction has removed everything from `start` on


def locate(segments: SegmentList, marks: Watermarks, offset: Offset) -> LogPosition:
    """Return the position of the batch that contains an offset. It has no file position if the offset is outside the
    segments."""
    if offset == marks.log_end.offset:
        return marks.log_end
    slot = segments.floor_slot(offset)
    if slot < 0:
        return LogPosition(offset)
    for segment in segments.tail(slot):
        try:
            header = segment.find(offset)
        except CorruptBatch as error:
            # A bound inside damage is at the start of the damage. Everything before it, and other segments, can still
            # be read.
            return LogPosition(offset, segment.base_offset, error.position or 0)
        if header is not None:
            return LogPosition(header.base_offset, segment.base_offset, header.position)
    return marks.log_end


def _end_position(segment: Segment, bound: LogPosition) -> int | None:
    """Return the position at which the readable part of a segment ends, or None if nothing of it may be read."""
    if segment.base_offset < bound.segment_base_offset:
        return segment.size
    if segment.base_offset == bound.segment_base_offset:
        return bound.position
    return None


def _aborted(
    segments: SegmentList,
    marks: Watermarks,
    start: Offset,
    segment: Segment,
    place: LogPosition,
    found: FileSlice | None,
) -> list[AbortedTransaction]:
    upper_bound = segment.upper_bound_offset(place.position + (found.size if found else 0))
    if upper_bound is None:
        later = segments.after(segment.base_offset)
        upper_bound = later[0].base_offset if later else marks.log_end.offset
    return segments.aborted_transactions(segment.base_offset, start, upper_bound)
