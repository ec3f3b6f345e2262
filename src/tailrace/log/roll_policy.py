"""When the active segment is sealed: size, age, a full index, offset overflow."""

from __future__ import annotations

from enum import Enum

from tailrace.log.segment import Segment
from tailrace.model.ids import Offset
from tailrace.model.topic_config import TopicConfig


class RollReason(Enum):
    SIZE = "segment.bytes reached"
    AGE = "segment.ms passed"
    FULL_INDEX = "index is full"
    OFFSET_OVERFLOW = "offset does not fit the segment"


def roll_reason(
    segment: Segment, config: TopicConfig, append_size: int, max_timestamp: int, last_offset: Offset, now_ms: int
) -> RollReason | None:
    """Why an append of this size, time and last offset must start a new segment; None if it need not."""
    size = segment.size
    if size > config.roll_bytes - append_size:
        return RollReason.SIZE
    # Jitter keeps thousands of partitions that were made together from rolling together.
    if size and segment.waited_ms(now_ms, max_timestamp) > config.roll_ms - segment.jitter_ms:
        return RollReason.AGE
    if segment.has_full_index:
        return RollReason.FULL_INDEX
    if not segment.offset_index.fits(last_offset):
        return RollReason.OFFSET_OVERFLOW
    return None
