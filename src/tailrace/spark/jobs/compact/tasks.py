"""The tasks that compact a partition together.

    scan     read a segment: its keys (in the dirty range with their latest offsets), split by hash, and the batches
             that begin or end transactions
    merge    for one part of the hashes: the latest offset of each key in the whole dirty range, for every group that
             has the key
    write    write one group with `log/compaction/cleaned_segment.py`, from a map of its own keys and the transactions
             that are open at its start

The map of a group has only the group's own keys. No other keys are needed to decide about its records.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tailrace.log.compaction.cleaned_segment import CleaningRules, GroupWriter, SegmentWalk, cleaned_path
from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.compaction import KeyScan, LatestOffsets
from tailrace.log.compaction.proposal import proposed_path
from tailrace.log.disk.files import DiskFiles, Files, join
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import SEGMENT_KINDS, Segment
from tailrace.model.ids import Offset, ProducerId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import HEADER_SIZE, CorruptBatch, RecordBatch
from tailrace.spark.jobs.compact.compaction_plan import PlannedSegment
from tailrace.spark.jobs.errors import JobError

ATTEMPTS = "compaction-attempts"  # contains a folder for each attempt of a task
_UNLIMITED_SLOTS = 2**40  # slots of a map: in effect unlimited, because a map grows with its keys


class ScanTask(NamedTuple):
    number: int  # index of the partition
    group: int
    partition: TopicPartition
    folder: str
    segment: PlannedSegment
    aborted: list[AbortedTransaction]
    start_offset: Offset


class Scanned(NamedTuple):
    number: int
    group: int
    base_offset: Offset
    asked: list[bytes]  # by part: all keys of the segment
    known: list[bytes]  # by part: the latest offsets of its keys in the dirty range
    events: list[bytes]  # batches that begin or end transactions
    records: int


class _RecordedTransactions(CleanedTransactions):
    """CleanedTransactions that record the batches that change their state.

    These are markers, and the first batch of each producer after a marker.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events: list[bytes] = []
        self._running: set[ProducerId] = set()

    def on_data(self, batch: RecordBatch) -> bool:
        if batch.is_transactional and batch.producer_id not in self._running:
            self._running.add(batch.producer_id)
            self.events.append(bytes(batch.view[:HEADER_SIZE]))
        return super().on_data(batch)

    def on_control(self, batch: RecordBatch) -> bool:
        self._running.discard(batch.producer_id)
        self.events.append(bytes(batch.view))
        return super().on_control(batch)


def scan(task: ScanTask, *, parts: int, salt: bytes) -> Scanned:
    segment = open_planned(task.folder, task.segment, TopicConfig())
    try:
        transactions = _RecordedTransactions()
        transactions.add_aborted(one for one in task.aborted if one.last_offset >= task.segment.base_offset)
        dirty_from = task.segment.dirty_from
        whole = LatestOffsets(_UNLIMITED_SLOTS, salt=salt)
        scanned = KeyScan(whole, 0, transactions)
        _read(task, segment, 0, scanned)
        asked = whole.split(parts)
        if dirty_from is None:
            known = [b""] * parts
        elif task.start_offset <= task.segment.base_offset:
            known = asked
        else:
            # The dirty range starts inside this segment.
            latest = LatestOffsets(_UNLIMITED_SLOTS, salt=salt)
            again = CleanedTransactions()
            again.add_aborted(task.aborted)
            _read(task, segment, dirty_from, KeyScan(latest, task.start_offset, again))
            known = latest.split(parts)
        return Scanned(
            task.number, task.group, task.segment.base_offset, asked, known, transactions.events, scanned.records_read
        )
    finally:
        segment.release()


def open_planned(folder: str, planned: PlannedSegment, config: TopicConfig) -> Segment:
    try:
        segment = Segment.open(DiskFiles(), folder, planned.base_offset, config, read_only=True)
    except FileNotFoundError as error:
        raise JobError(f"{error.filename} was deleted during the job; run the job again") from None
    if segment.size < planned.old.size:
        raise JobError(f"{segment.log.path} was truncated during the job; run the job again")
    segment.size = planned.old.size
    return segment


def _read(task: ScanTask, segment: Segment, position: int, scanned: KeyScan) -> None:
    try:
        for _ in SegmentWalk()(segment, position, scanned.add):
            pass
    except CorruptBatch as error:
        reached = max(scanned.latest.latest_offset + 1, task.segment.base_offset)
        raise damaged(task.partition, reached, error) from None


def damaged(partition: TopicPartition, offset: Offset, error: CorruptBatch) -> JobError:
    where = f"{error.path} at position {error.position}"
    return JobError(f"{partition} is damaged at offset {offset} or after it ({where}): {error.reason}", status=1)


def merge(found: Iterable[tuple[int, bytes, bytes]], salt: bytes) -> Iterator[tuple[int, bytes]]:
    """Merge one part of the hashes: (group, its keys, known latest offsets) → (group, latest offsets of its keys)."""
    rows = list(found)
    latest = LatestOffsets(_UNLIMITED_SLOTS, salt=salt)
    for _, _, known in rows:
        latest.merge(known)
    for group, asked, _ in rows:
        yield group, latest.look_up(asked)


class WriteTask(NamedTuple):
    partition: TopicPartition
    folder: str
    segments: list[PlannedSegment]
    rules: CleaningRules
    transactions: CleanedTransactions


class Written(NamedTuple):
    folder: str  # the folder of the attempt
    sizes: dict[str, int]
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int


def write(task: WriteTask, latest_offsets: Iterable[bytes], salt: bytes) -> Written:
    files = DiskFiles()
    rules, base_offset = task.rules, task.segments[0].base_offset
    latest = LatestOffsets(_UNLIMITED_SLOTS, salt=salt)
    for entries in latest_offsets:
        latest.merge(entries)
    latest.skip_to(rules.end_offset)
    # Spark may run a task twice, even in parallel. Every attempt has a folder of its own, and one of them is used.
    target = join(task.folder, ATTEMPTS, uuid.uuid4().hex)
    os.makedirs(target)
    aborted = {segment.base_offset: segment.aborted for segment in task.segments}
    segments = [open_planned(task.folder, segment, rules.config) for segment in task.segments]
    writer = GroupWriter(files, rules, latest, task.transactions, lambda start, end: aborted[start], SegmentWalk())
    try:
        writer.write(segments, target).release()
    except CorruptBatch as error:
        raise damaged(task.partition, base_offset, error) from None
    finally:
        for segment in segments:
            segment.release()
    files.sync_directory(target)
    return Written(
        target,
        written_files(files, target, base_offset),
        writer.bytes_read,
        writer.bytes_written,
        writer.survivors.records_read,
        writer.survivors.records_kept,
    )


def written_files(files: Files, target: str, base_offset: Offset) -> dict[str, int]:
    """Return the files of a cleaned segment with their sizes."""
    paths = {kind: cleaned_path(target, base_offset, kind) for kind in SEGMENT_KINDS}
    return {kind: files.size(path) for kind, path in paths.items() if files.exists(path)}


def move_into_place(folder: str, base_offset: Offset, written: Written) -> None:
    """Move the files of an attempt to the paths of the proposal."""
    for kind in written.sizes:
        os.replace(cleaned_path(written.folder, base_offset, kind), proposed_path(folder, base_offset, kind))
