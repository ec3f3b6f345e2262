"""Retention: which segments are deleted, and why. Only whole segments are deleted, oldest first, and never beyond the
high watermark."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Watermarks
from tailrace.model.topic_config import INT_MAX, TopicConfig


class DeletionReason(Enum):
    LOG_START = "below the log start offset"
    SIZE = "retention.bytes exceeded"
    AGE = "retention.ms passed"


def reasons(config: TopicConfig) -> list[DeletionReason]:
    """Return the reasons that apply to a topic, in the order in which they are checked."""
    return list(DeletionReason) if config.is_deleted_by_retention else [DeletionReason.LOG_START]


def segments_to_delete(
    reason: DeletionReason,
    segments: SegmentList,
    marks: Watermarks,
    config: TopicConfig,
    now_ms: int,
    at_most: int = INT_MAX,
) -> list[Segment]:
    """Return the oldest segments that must be deleted for this reason, up to `at_most`."""
    if reason is DeletionReason.LOG_START:
        return below_log_start(segments, marks, at_most)
    if reason is DeletionReason.SIZE:
        return beyond_size(segments, marks, config, at_most)
    return beyond_age(segments, marks, config, now_ms, at_most)


def below_log_start(segments: SegmentList, marks: Watermarks, at_most: int = INT_MAX) -> list[Segment]:
    """Return the segments with all records before the log start offset."""
    return _leading(
        segments,
        marks,
        lambda segment, next_one: bool(next_one and next_one.base_offset <= marks.log_start_offset),
        at_most,
    )


def beyond_size(segments: SegmentList, marks: Watermarks, config: TopicConfig, at_most: int = INT_MAX) -> list[Segment]:
    """Return the oldest segments that can be deleted while the log keeps at least `retention.bytes`."""
    if config.retention_bytes < 0:
        return []
    surplus = segments.total_size() - config.retention_bytes
    if surplus < 0:
        return []

    def surplus_remains(segment: Segment, next_one: Segment | None) -> bool:
        nonlocal surplus
        if surplus - segment.size < 0:
            return False
        surplus -= segment.size
        return True

    return _leading(segments, marks, surplus_remains, at_most)


def beyond_age(
    segments: SegmentList, marks: Watermarks, config: TopicConfig, now_ms: int, at_most: int = INT_MAX
) -> list[Segment]:
    """Return the segments whose latest record is older than `retention.ms`."""
    if config.retention_ms < 0:
        return []
    return _leading(
        segments,
        marks,
        lambda segment, next_one: now_ms - segment.retention_timestamp_ms() > config.retention_ms,
        at_most,
    )


def _leading(
    segments: SegmentList, marks: Watermarks, is_deletable: Callable[[Segment, Segment | None], bool], at_most: int
) -> list[Segment]:
    """Return the oldest consecutive segments that may be deleted. The active one is included only if it has records."""
    deletable: list[Segment] = []
    for slot, segment in enumerate(segments):
        if len(deletable) == at_most:
            break
        next_one = segments[slot + 1] if slot + 1 < len(segments) else None
        upper_bound = next_one.base_offset if next_one else marks.log_end_offset
        is_empty_active = next_one is None and segment.size == 0
        if marks.high_watermark_offset < upper_bound or is_empty_active or not is_deletable(segment, next_one):
            break
        deletable.append(segment)
    return deletable
