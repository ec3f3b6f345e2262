"""The rules for starting a new segment: size, age, a full index, offset overflow."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from tailrace.log.segments.segment import Segment
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.topic_config import INT_MAX, LONG_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch

_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time
_EXPIRED: Final = -LONG_MAX - 2  # below any timestamp


class RollReason(Enum):
    SIZE = "segment.bytes reached"
    AGE = "segment.ms passed"
    FULL_INDEX = "index is full"
    OFFSET_OVERFLOW = "offset does not fit the segment"


class SegmentRoom(NamedTuple):
    """The room in an active segment: limits beyond which a new one has to be started."""

    segment: Segment | None
    config: TopicConfig | None  # that the limits are from
    bytes: int  # of the segment
    timestamp_max: int
    batches: int  # that need no new check of indexes and age
    offset_max: Offset

    def roll_reason(self, size: int, max_timestamp: int, last_offset: Offset) -> RollReason | None:
        """Return why an append of this time and last offset, after which the segment has `size` bytes, must start a new
        segment, or None if it need not."""
        if size > self.bytes:
            return RollReason.SIZE
        if max_timestamp > self.timestamp_max:
            return RollReason.AGE
        if not self.batches:
            return RollReason.FULL_INDEX
        if last_offset > self.offset_max:
            return RollReason.OFFSET_OVERFLOW
        return None


NO_ROOM: Final = SegmentRoom(None, None, 0, _EXPIRED, 0, -1)


def room_in(segment: Segment, now_ms: int) -> SegmentRoom:
    """Return the room in an active segment, under its config. Raise KafkaError if its first batch is damaged."""
    config = segment.config
    batches = 0 if segment.has_full_index else segment.index_room
    timestamp_max = LONG_MAX
    try:
        first = segment.first_batch_timestamp()
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the age of a segment is unknown: {error}") from error
    # Jitter keeps thousands of partitions that were created together from rolling together.
    age_max = config.roll_ms - segment.jitter_ms
    if first >= 0:
        timestamp_max = first + age_max
    else:
        batches = min(batches, 1)  # the age is counted from the first batch, or in real time
        if segment.size and now_ms - segment.created_ms > age_max:
            timestamp_max = _EXPIRED
    room = segment, config, config.roll_bytes, timestamp_max, batches, segment.base_offset + INT_MAX
    return _new_tuple(SegmentRoom, room)


def check_segment_size(size: int, partition: TopicPartition, config: TopicConfig) -> None:
    """Raise KafkaError if an append does not fit into an empty segment."""
    if size > config.roll_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes in one append to {partition} exceed the segment size of {config.roll_bytes}",
        )
