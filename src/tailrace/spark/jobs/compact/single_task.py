"""Compacts a partition in one task: the two passes of the log cleaner, if a map of all keys fits into memory.

For a partition of ordinary size this is several times less work than with several tasks (`tasks.py`): nothing is
shuffled, and each key is in one map once. Spark runs the tasks of many partitions in parallel.
"""

from __future__ import annotations

import os
import uuid
from itertools import chain, zip_longest
from typing import NamedTuple

from tailrace.log.compaction.cleaned_segment import CleaningRules, GroupWriter, SegmentWalk
from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.cleaner_kernels import SLOT_SIZE
from tailrace.log.compaction.compaction import KeyScan, LatestOffsets
from tailrace.log.disk.files import DiskFiles, join
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.batch import CorruptBatch
from tailrace.spark.jobs.compact.compaction_plan import PlannedSegment
from tailrace.spark.jobs.compact.tasks import ATTEMPTS, Written, damaged, open_planned, written_files

MAP_BYTES = 256 * 1024 * 1024  # enough for ten million keys; the map grows with the number of keys


class SingleTask(NamedTuple):
    partition: TopicPartition
    folder: str
    groups: list[list[PlannedSegment]]
    rules: CleaningRules
    aborted: list[AbortedTransaction]  # within the dirty range
    start_offset: Offset


def compact_in_one_task(task: SingleTask, *, salt: bytes, map_bytes: int = MAP_BYTES) -> list[Written] | None:
    """Write the compacted groups. Return None if there are more keys than the map holds."""
    latest = LatestOffsets(map_bytes // SLOT_SIZE, salt=salt)
    walk = SegmentWalk()
    if not _put_keys(task, latest, walk):
        return None
    files = DiskFiles()
    # Spark may run a task twice, even in parallel. Every attempt has a folder of its own, and one of them is used.
    target = join(task.folder, ATTEMPTS, uuid.uuid4().hex)
    os.makedirs(target)
    aborted = {segment.base_offset: segment.aborted for group in task.groups for segment in group}
    transactions = CleanedTransactions()
    writer = GroupWriter(files, task.rules, latest, transactions, lambda start, end: aborted[start], walk)
    done = []
    for group in task.groups:
        before = _counts(writer)
        segments = [open_planned(task.folder, segment, task.rules.config) for segment in group]
        try:
            writer.write(segments, target).release()
        except CorruptBatch as error:
            raise damaged(task.partition, group[0].base_offset, error) from None
        finally:
            for segment in segments:
                segment.release()
        counts = [now - then for now, then in zip(_counts(writer), before, strict=True)]
        done.append(Written(target, written_files(files, target, group[0].base_offset), *counts))
    files.sync_directory(target)
    return done


def _put_keys(task: SingleTask, latest: LatestOffsets, walk: SegmentWalk) -> bool:
    """Put the latest offset of each key in the dirty range into the map. Return False if the map is full."""
    transactions = CleanedTransactions()
    transactions.add_aborted(task.aborted)
    scan = KeyScan(latest, task.start_offset, transactions)
    dirty = [one for one in chain.from_iterable(task.groups) if one.dirty_from is not None]
    for planned, following in zip_longest(dirty, dirty[1:]):
        segment = open_planned(task.folder, planned, task.rules.config)
        try:
            for _ in walk(segment, planned.dirty_from or 0, scan.add):
                if scan.is_full:
                    return False
        except CorruptBatch as error:
            reached = max(latest.latest_offset + 1, planned.base_offset)
            raise damaged(task.partition, reached, error) from None
        finally:
            segment.release()
        # After the segment's last record there may be a gap of an earlier compaction, without records.
        scan.skip_to(following.base_offset if following else task.rules.end_offset)
    return True


def _counts(writer: GroupWriter) -> tuple[int, int, int, int]:
    return (
        writer.bytes_read,
        writer.bytes_written,
        writer.survivors.records_read,
        writer.survivors.records_kept,
    )
