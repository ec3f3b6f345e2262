"""Expiration: the remote segments that retention deletes, and those that belong to no record of the log.

    log start   all epochs up to the first one of the log, and the last offset below the log start
    age         the largest timestamp is older than `retention.ms`
    size        remote segments and local-only segments together exceed `retention.bytes`

Segments are checked in the order of the log's epochs, and the first one that stays ends the search. The log start
moves first, then the segments are deleted: a crash in between leaves segments below the log start, which the next run
deletes. A deletion that has failed before is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import NamedTuple

from tailrace.log.upkeep.log_offsets import LogOffsets
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset
from tailrace.tiers.deletion import delete_segment
from tailrace.tiers.lineage import Epochs, epochs_with_records, is_within_epochs
from tailrace.tiers.metadata.segment_cache import SegmentCache
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState
from tailrace.tiers.steps import RemoteSteps
from tailrace.tiers.stores.remote_store import RemoteStore

_log = logging.getLogger(__name__)


class LogFacts(NamedTuple):
    """The state of the log that the expiration depends on."""

    log_start: Offset
    log_end: Offset
    only_local_bytes: int  # the size of the segments that are not in the remote store yet
    retention_bytes: int  # negative: no limit
    retention_ms: int


class Expiration(NamedTuple):
    segments: list[RemoteSegment]  # to be deleted
    log_start: Offset | None  # the new start of the log, if it moves
    unreferenced: list[RemoteSegment]  # to be deleted: abandoned copies, and epochs before the log's first one


def facts_of(log: LogOffsets) -> LogFacts:
    config = log.config
    return LogFacts(
        log.log_start_offset,
        log.log_end_offset,
        sum(log.only_local_segments()),
        config.retention_bytes,
        config.retention_ms,
    )


def plan_expiration(
    cache: SegmentCache,
    epochs: Epochs,
    log: LogFacts,
    now_ms: int,
    being_copied: Collection[RemoteSegmentId] = (),
    broker_id: BrokerId = -1,
) -> Expiration:
    """Return the segments to delete. `epochs` are all epochs of the log. `broker_id` is this broker: a copy that it
    began and no longer makes is abandoned, because the broker has stopped or the store was busy."""
    lineage = epochs_with_records(epochs)
    abandoned = {
        segment.segment_id: segment
        for segment in cache.all()
        if segment.state is RemoteSegmentState.COPY_SEGMENT_STARTED
        and segment.broker_id == broker_id
        and segment.segment_id not in being_copied
    }
    found = _ExpiredSegments(lineage, log, _surplus(cache, lineage, log), now_ms)
    found.search(cache, being_copied, abandoned)
    unreferenced = _unreferenced(cache, epochs, {**found.segments, **abandoned})
    return Expiration(list(found.segments.values()), found.new_start, [*abandoned.values(), *unreferenced])


def _surplus(cache: SegmentCache, lineage: Epochs, log: LogFacts) -> int:
    """Return by how many bytes the log exceeds its limit. Only readable segments of the log's own records count.

    Segments below the log start do not count: their deletion was decided before and is repeated, because the store has
    failed. In Kafka they count, and then as many bytes more are deleted.
    """
    if log.retention_bytes < 0:
        return 0
    counted: dict[RemoteSegmentId, int] = {}
    for epoch, _ in lineage:
        for segment in cache.in_epoch(epoch):
            if (
                segment.state is RemoteSegmentState.COPY_SEGMENT_FINISHED
                and not _is_below_start(segment, lineage, log)
                and is_within_epochs(segment, log.log_end, lineage)
            ):
                counted[segment.segment_id] = segment.size
    return max(sum(counted.values()) + log.only_local_bytes - log.retention_bytes, 0)


def _is_below_start(segment: RemoteSegment, lineage: Epochs, log: LogFacts) -> bool:
    return segment.leader_epochs[-1][0] <= lineage[0][0] and segment.end_offset < log.log_start


def _unreferenced(cache: SegmentCache, epochs: Epochs, known: Collection[RemoteSegmentId]) -> list[RemoteSegment]:
    """Return the segments with all epochs before the log's first one, as an unclean election leaves them."""
    if not epochs:
        return []
    first: LeaderEpoch = epochs[0][0]
    return [
        segment for segment in cache.all() if segment.leader_epochs[-1][0] < first and segment.segment_id not in known
    ]


class _ExpiredSegments:
    """The search for segments that retention deletes."""

    def __init__(self, lineage: Epochs, log: LogFacts, surplus: int, now_ms: int) -> None:
        self._lineage = lineage
        self._log = log
        self._surplus = surplus
        self._oldest_ms = now_ms - log.retention_ms if 0 <= log.retention_ms <= now_ms else None
        self.segments: dict[RemoteSegmentId, RemoteSegment] = {}
        self.new_start: Offset | None = None

    def search(
        self,
        cache: SegmentCache,
        being_copied: Collection[RemoteSegmentId],
        abandoned: Collection[RemoteSegmentId],
    ) -> None:
        for epoch, _ in self._lineage:
            for segment in cache.in_epoch(epoch):
                if segment.segment_id in abandoned:
                    continue
                if segment.segment_id in being_copied:
                    return
                if segment.segment_id not in self.segments and not self._may_go_on(segment):
                    return

    def _may_go_on(self, segment: RemoteSegment) -> bool:
        """Decide on a segment. Return False if it stays, so that later ones stay, too."""
        is_expired = segment.state is RemoteSegmentState.DELETE_SEGMENT_STARTED or _is_below_start(
            segment, self._lineage, self._log
        )
        is_own = not is_expired and is_within_epochs(segment, self._log.log_end, self._lineage)
        if is_own:
            is_expired = self._is_too_old(segment) or self._is_surplus(segment)
            if is_expired:
                self.new_start = max(self.new_start or 0, segment.end_offset + 1)
        if is_expired:
            self.segments[segment.segment_id] = segment
        return is_expired or not is_own

    def _is_too_old(self, segment: RemoteSegment) -> bool:
        if self._oldest_ms is None or segment.max_timestamp_ms >= self._oldest_ms:
            return False
        self._surplus = max(self._surplus - segment.size, 0)
        return True

    def _is_surplus(self, segment: RemoteSegment) -> bool:
        if self._surplus <= 0 or segment.size > self._surplus:
            return False
        self._surplus -= segment.size
        return True


def expire_segments(
    partition: RemotePartition,
    store: RemoteStore,
    broker_id: BrokerId,
    forget: Callable[[RemoteSegment], None],
    now_ms: int,
) -> RemoteSteps[int]:
    """Delete what retention deletes. Return the number of segments. `forget` drops what is cached of a segment."""
    partition.find_bounds(now_ms)
    log = partition.log
    plan = plan_expiration(partition.cache, partition.epochs, facts_of(log), now_ms, partition.being_copied, broker_id)
    if plan.log_start is not None:
        log.delete_records(min(plan.log_start, log.high_watermark), now_ms)
    deleted = 0
    for segment in (*plan.segments, *plan.unreferenced):
        if partition.is_stopped or not partition.is_leader:
            break
        now_ms = yield from delete_segment(store, segment, broker_id, partition.counters, now_ms)
        forget(segment)
        deleted += 1
        _log.info(
            "%s: deleted the remote segment of offsets %d to %d",
            partition.key,
            segment.start_offset,
            segment.end_offset,
        )
    return deleted
