"""Retention: which segments are deleted, and why. Only whole segments are deleted, oldest first, and never beyond the
high watermark.

With tiered storage, `local.retention.*` limits the local disk, and a segment is deleted there only when it is in the
remote store or below the log start.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX, TopicConfig

_AS_WITHOUT_TIERS: Final = -2


class DeletionReason(Enum):
    LOG_START = "below the log start offset"
    SIZE = "retention.bytes exceeded"
    AGE = "retention.ms passed"


class RetentionLimits(NamedTuple):
    bytes: int  # negative: no limit
    ms: int
    highest_remote_offset: Offset | None  # None: segments are not copied to a remote store


def limits_of(config: TopicConfig, highest_remote_offset: Offset | None = None) -> RetentionLimits:
    """Return the limits of the local log. Give `highest_remote_offset` if its segments are copied to a remote store."""
    size, age = config.retention_bytes, config.retention_ms
    if highest_remote_offset is not None:
        size = size if config.local_retention_bytes == _AS_WITHOUT_TIERS else config.local_retention_bytes
        age = age if config.local_retention_ms == _AS_WITHOUT_TIERS else config.local_retention_ms
    return RetentionLimits(size, age, highest_remote_offset)


def reasons(config: TopicConfig) -> list[DeletionReason]:
    """Return the reasons that apply to a topic, in the order in which they are checked."""
    return list(DeletionReason) if config.is_deleted_by_retention else [DeletionReason.LOG_START]


def segments_to_delete(
    reason: DeletionReason,
    segments: SegmentList,
    marks: Watermarks,
    limits: RetentionLimits,
    now_ms: int,
    at_most: int = INT_MAX,
) -> list[Segment]:
    """Return the oldest segments that must be deleted for this reason, up to `at_most`.

    The active segment is the last of them also if it is not in the remote store yet: the caller has to seal it.
    """
    if reason is DeletionReason.LOG_START:
        return below_log_start(segments, marks, at_most)
    if reason is DeletionReason.SIZE:
        return beyond_size(segments, marks, limits, at_most)
    return beyond_age(segments, marks, limits, now_ms, at_most)


def below_log_start(segments: SegmentList, marks: Watermarks, at_most: int = INT_MAX) -> list[Segment]:
    """Return the segments with all records before the log start offset."""
    return _leading(
        segments,
        marks,
        lambda segment, next_one: bool(next_one and next_one.base_offset <= marks.log_start_offset),
        at_most,
    )


def beyond_size(
    segments: SegmentList, marks: Watermarks, limits: RetentionLimits, at_most: int = INT_MAX
) -> list[Segment]:
    """Return the oldest segments that can be deleted while the log keeps at least `retention.bytes`."""
    if limits.bytes < 0:
        return []
    surplus = segments.total_size() - limits.bytes
    if surplus < 0:
        return []

    def surplus_remains(segment: Segment, next_one: Segment | None) -> bool:
        nonlocal surplus
        if surplus - segment.size < 0:
            return False
        surplus -= segment.size
        return True

    return _leading(segments, marks, surplus_remains, at_most, limits.highest_remote_offset)


def beyond_age(
    segments: SegmentList, marks: Watermarks, limits: RetentionLimits, now_ms: int, at_most: int = INT_MAX
) -> list[Segment]:
    """Return the segments whose latest record is older than `retention.ms`."""
    if limits.ms < 0:
        return []
    return _leading(
        segments,
        marks,
        lambda segment, next_one: now_ms - segment.retention_timestamp_ms() > limits.ms,
        at_most,
        limits.highest_remote_offset,
    )


def _leading(
    segments: SegmentList,
    marks: Watermarks,
    is_deletable: Callable[[Segment, Segment | None], bool],
    at_most: int,
    highest_remote_offset: Offset | None = None,
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
        if (
            highest_remote_offset is not None
            and next_one is not None
            and not 0 < upper_bound <= highest_remote_offset + 1
            and marks.log_start_offset < upper_bound
        ):
            break  # it would be lost: the remote store does not have it
        deletable.append(segment)
    return deletable
