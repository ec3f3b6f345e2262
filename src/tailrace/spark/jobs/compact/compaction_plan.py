"""The compaction plan of one partition, made on the driver from file names, indexes and checkpoints.

The plan is made with the code of the log cleaner: the dirty range, the groups of segments that become one segment, and
the rules for their records. It consists of plain values, because it is sent to the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tailrace.log.compaction.cleaned_segment import CleaningRules, with_following
from tailrace.log.compaction.cleaner import aborted_from, cleaning_rules
from tailrace.log.compaction.cleaner_range import DirtyRange, find_dirty_range
from tailrace.log.compaction.proposal import OldSegment, describe_old
from tailrace.log.compaction.segment_groups import group_segments
from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.findings import InspectionFailed
from tailrace.log.inspect.offline import open_exact
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.ids import Offset
from tailrace.model.topic_config import TopicConfig
from tailrace.spark.jobs.errors import JobError

PRODUCER_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms: producers without a write for longer are forgotten


class PlannedSegment(NamedTuple):
    old: OldSegment
    aborted: list[AbortedTransaction]  # those that overlap its offsets, from its index and later ones
    dirty_from: int | None  # position of the first dirty byte; None: clean

    @property
    def base_offset(self) -> Offset:
        return self.old.base_offset


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    folder: PartitionFolder
    dirty: DirtyRange
    rules: CleaningRules
    aborted: list[AbortedTransaction]  # within the dirty range
    groups: list[list[PlannedSegment]]

    @property
    def size(self) -> int:
        return sum(segment.old.size for group in self.groups for segment in group)


def plan_compaction(
    folder: PartitionFolder,
    config: TopicConfig,
    now_ms: int,
    *,
    only_if_due: bool = False,
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
) -> CompactionPlan | None:
    """Plan the compaction of a partition. Return None if there is nothing to compact."""
    files = DiskFiles()
    try:
        log = open_exact(files, folder, now_ms).log
    except InspectionFailed as error:
        raise JobError(f"{folder.partition} cannot be compacted: {error}", status=1) from None
    try:
        log.update_config(config)
        log.producers.expire_after(producer_expiration_ms)
        log.producers.remove_expired(now_ms)
        dirty = find_dirty_range(log, folder.cleaned_to, now_ms)
        start, end = dirty.first_dirty_offset, dirty.first_uncleanable_offset
        if start >= end or (only_if_due and not dirty.is_due(config.min_cleanable_dirty_ratio)):
            return None
        segments = log.segments.between(0, end)
        dirty_segments = log.segments.between(start, end)
        first_dirty = dirty_segments[0].base_offset
        planned = {}
        # The last segment of a group ends with its own last batch, as the task that writes the group will see it.
        groups = group_segments(segments, config.roll_bytes, config.segment_index_bytes, end)
        for group in groups:
            for segment, following in with_following(group):
                own_end = following.base_offset if following else segment.next_offset()
                planned[segment.base_offset] = PlannedSegment(
                    describe_old(files, [segment])[0],
                    aborted_from(log, segment.base_offset, own_end),
                    segment.offset_start(start).position if segment.base_offset >= first_dirty else None,
                )
        return CompactionPlan(
            folder,
            dirty,
            cleaning_rules(files, log, dirty, now_ms),
            aborted_from(log, start, end),
            [[planned[segment.base_offset] for segment in group] for group in groups],
        )
    finally:
        log.abandon()
