"""DirtyRange: the dirty part of a compacted log, how much of it may be cleaned now, and if cleaning is due.

    ├──── clean ────┼────────── dirty, cleanable ──────────┼──── not yet ────┤
    log start       first dirty offset                     first uncleanable offset
                    (the cleaner checkpoint)

Not yet cleanable are the active segment, everything from the last stable offset on (and so from the high watermark on),
and everything from the first dirty segment with a record younger than min.compaction.lag.ms. The bound is rounded down
to a segment's start.

Cleaning is due if the dirty part is more than min.cleanable.dirty.ratio of the bytes to read, or if a part of it has
waited longer than max.compaction.lag.ms. Of several logs that are due, the log with the largest dirty ratio is cleaned
first.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset
from tailrace.model.topic_config import LONG_MAX

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtyRange:
    first_dirty_offset: Offset
    first_uncleanable_offset: Offset
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int  # the time since the oldest dirty record passed max.compaction.lag.ms; 0 if it has not
    checkpoint_was_invalid: bool  # the checkpoint was outside the log and has to be set to first_dirty_offset

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        if self.compaction_delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.cleanable_ratio > min_cleanable_dirty_ratio


def find_dirty_range(log: PartitionLog, last_clean_offset: Offset | None, now_ms: int) -> DirtyRange:
    """Return the dirty range of a log. `last_clean_offset` is from the cleaner checkpoint; None if it has no entry."""
    first_dirty, was_invalid = _first_dirty_offset(log, last_clean_offset)
    bound = max(first_dirty, _first_uncleanable_offset(log, first_dirty, now_ms))
    bounding = _sealed_from(log, bound)
    first_uncleanable = (bounding[0] if bounding else log.segments.active).base_offset
    return DirtyRange(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=_bytes(log.segments.between(-1, first_dirty)),
        cleanable_bytes=_bytes(log.segments.between(min(first_dirty, first_uncleanable), first_uncleanable)),
        compaction_delay_ms=_compaction_delay_ms(log, first_dirty, now_ms),
        checkpoint_was_invalid=was_invalid,
    )


def _first_dirty_offset(log: PartitionLog, last_clean_offset: Offset | None) -> tuple[Offset, bool]:
    start, end = log.log_start_offset, log.log_end_offset
    if last_clean_offset is None:
        return start, False
    if last_clean_offset < start:
        # With both policies, retention regularly moves the start of a log beyond the checkpoint.
        if not log.config.is_deleted_by_retention:
            _log.warning("%s: cleaned up to %d, but starts at %d", log.partition, last_clean_offset, start)
        return start, True
    if last_clean_offset > end:
        _log.warning(
            "%s: cleaned up to %d, but ends at %d: the whole log is dirty", log.partition, last_clean_offset, end
        )
        return start, True
    return last_clean_offset, False


def _first_uncleanable_offset(log: PartitionLog, first_dirty: Offset, now_ms: int) -> Offset:
    bound = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in _sealed_from(log, first_dirty):
            if segment.max_timestamp > now_ms - lag_ms:
                return min(bound, segment.base_offset)
    return bound


def _compaction_delay_ms(log: PartitionLog, first_dirty: Offset, now_ms: int) -> int:
    timestamps = [segment.compaction_timestamp_ms() for segment in _sealed_from(log, first_dirty)]
    oldest = min((timestamp for timestamp in timestamps if timestamp > 0), default=LONG_MAX)
    return max(now_ms - log.config.max_compaction_lag_ms - oldest, 0)


def _sealed_from(log: PartitionLog, offset: Offset) -> list[Segment]:
    return log.segments.between(offset, log.segments.active.base_offset)


def _bytes(segments: list[Segment]) -> int:
    return sum(segment.size for segment in segments)
