"""LogMap: a partition's log as it lies on disk, and what retention will delete and compaction rewrite next.

The map has the density of each segment's index, leader epochs, producer snapshots, and open and aborted transactions.
Deletion and compaction are decided by the code that carries them out in a broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tailrace.log.compaction.cleaner_range import DirtyRange, find_dirty_range
from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.offline import OfflineLog, open_exact
from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import Segment
from tailrace.log.upkeep.retention import DeletionReason, reasons, segments_to_delete
from tailrace.model.ids import Offset, ProducerId
from tailrace.model.topic_config import TopicConfig

DENSITY_PARTS: Final = 32  # equal parts of a segment, by bytes
ABORTED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedSegment:
    base_offset: Offset
    end_offset: Offset
    size: int
    index_density: list[int]  # index entries in each part of the segment
    time_index_entries: int
    aborted_transactions: int
    has_snapshot: bool
    largest_timestamp: int
    deletion: DeletionReason | None  # it is deleted by the next run of retention
    deletable_from_ms: int | None  # retention.ms passes then; None if its age does not matter


@dataclass(frozen=True, slots=True)
class MappedTransaction:
    producer_id: ProducerId
    producer_epoch: int
    first_offset: Offset
    last_timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMap:
    folder: PartitionFolder
    log_start_offset: Offset
    last_stable_offset: Offset
    high_watermark: Offset
    log_end_offset: Offset
    epochs: list[tuple[int, Offset]]
    segments: list[MappedSegment]
    open_transactions: list[MappedTransaction]
    aborted_transactions: list[AbortedTransaction]  # the latest
    dirty: DirtyRange | None  # of a compacted topic
    findings: list[Finding] = field(default_factory=list)


def map_log(files: Files, folder: PartitionFolder, config: TopicConfig, now_ms: int) -> LogMap:
    """Map a partition. Raise Unopenable if it cannot be opened."""
    offline = open_exact(files, folder, now_ms)
    log = offline.log
    try:
        log.update_config(config)
        names = {entry.name for entry in offline.files.fresh().entries(folder.path)}
        deletions = _deletions(log, now_ms)
        return LogMap(
            folder=folder,
            log_start_offset=log.log_start_offset,
            last_stable_offset=log.last_stable_offset,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
            epochs=list(log.epochs.entries),
            segments=[_map_segment(offline, segment, names, deletions) for segment in log.segments],
            open_transactions=_open_transactions(log),
            aborted_transactions=_aborted_transactions(log),
            dirty=find_dirty_range(log, folder.cleaned_to, now_ms) if config.is_compacted else None,
            findings=offline.findings,
        )
    finally:
        log.abandon()


def _deletions(log: PartitionLog, now_ms: int) -> dict[Offset, DeletionReason]:
    """Return the segments that retention would delete now, with the first reason that applies to each.

    A segment that must be in a remote store first is not among them: the files do not show whether it is there.
    """
    found: dict[Offset, DeletionReason] = {}
    limits = log.retention_limits()
    for reason in reasons(log.config):
        for segment in segments_to_delete(reason, log.segments, log.marks, limits, now_ms):
            found.setdefault(segment.base_offset, reason)
    return found


def _map_segment(
    offline: OfflineLog, segment: Segment, names: set[str], deletions: dict[Offset, DeletionReason]
) -> MappedSegment:
    log = offline.log
    later = log.segments.after(segment.base_offset)
    retention_ms = log.retention_limits().ms
    has_age = log.config.is_deleted_by_retention and retention_ms >= 0 and segment.size > 0
    try:
        return MappedSegment(
            base_offset=segment.base_offset,
            end_offset=later[0].base_offset if later else log.log_end_offset,
            size=segment.size,
            index_density=_density(segment),
            time_index_entries=segment.time_index.count,
            aborted_transactions=len(segment.transaction_index.entries),
            has_snapshot=file_names.segment_file(segment.base_offset, file_names.PRODUCER_SNAPSHOT) in names,
            largest_timestamp=segment.max_timestamp,
            deletion=deletions.get(segment.base_offset),
            deletable_from_ms=segment.retention_timestamp_ms() + retention_ms + 1 if has_age else None,
        )
    finally:
        segment.release()


def _density(segment: Segment) -> list[int]:
    parts = [0] * DENSITY_PARTS
    index = segment.offset_index
    for slot in range(index.count):
        part = index.entry(slot).position * DENSITY_PARTS // max(segment.size, 1)
        parts[min(part, DENSITY_PARTS - 1)] += 1
    return parts


def _open_transactions(log: PartitionLog) -> list[MappedTransaction]:
    found = []
    for first, transaction in log.producers.open_transactions.items():
        state = log.producers.producers[transaction.producer_id]
        found.append(MappedTransaction(state.producer_id, state.producer_epoch, first, state.last_timestamp))
    return found


def _aborted_transactions(log: PartitionLog) -> list[AbortedTransaction]:
    found = [entry for segment in log.segments for entry in segment.transaction_index.entries]
    return found[-ABORTED_MAX:]
