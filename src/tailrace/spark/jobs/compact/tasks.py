"""What compaction's tasks do where several share a partition.

    scan     read segments: which keys are in them (and, in the dirty part, their latest offsets), split by hash; and
             the batches that begin or end transactions
    merge    one part of the hashes: the latest offset of each key over the whole dirty range, told to every group that
             has the key
    write    one group: a map of its own keys, the transactions open where it starts, and
    `log/compaction/cleaned_segment.py`

A group's map has only its own keys: all that decides about its records.
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
from tailrace.spark.jobs.compact.plan import PlannedSegment
from tailrace.spark.jobs.errors import JobError

WRITING = "compaction-attempts"  # a folder for each attempt of a task is in it
_MANY = 2**40  # slots: a map grows with its keys, and Spark's memory is its limit


class ScanTask(NamedTuple):
    number: int  # of the partition
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
    asked: list[bytes]  # by part: the keys there are
    known: list[bytes]  # by part: the latest offsets of the keys in the dirty range
    events: list[bytes]  # batches that transactions begin or end with
    records: int


class _RecordedTransactions(CleanedTransactions):
    """Writes down what changes its state: markers, and the first batch of each producer between two."""

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
        whole = LatestOffsets(_MANY, salt=salt)
        scanned = KeyScan(whole, 0, transactions)
        _read(task, segment, 0, scanned)
        asked = whole.split(parts)
        if dirty_from is None:
            known = [b""] * parts
        elif task.start_offset <= task.segment.base_offset:
            known = asked
        else:
            # The dirty range starts inside this segment.
            latest = LatestOffsets(_MANY, salt=salt)
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
        raise JobError(f"{error.filename} is gone since the job began; start it again") from None
    if segment.size < planned.old.size:
        raise JobError(f"{segment.log.path} has been cut since the job began; start it again")
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
    """Of one part: (group, keys asked for, latest offsets known) in; (group, latest offsets of its keys) out."""
    rows = list(found)
    latest = LatestOffsets(_MANY, salt=salt)
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
    folder: str  # where the attempt that counts has put its files
    sizes: dict[str, int]
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int


def write(task: WriteTask, latest_offsets: Iterable[bytes], salt: bytes) -> Written:
    files = DiskFiles()
    rules, base_offset = task.rules, task.segments[0].base_offset
    latest = LatestOffsets(_MANY, salt=salt)
    for entries in latest_offsets:
        latest.merge(entries)
    latest.latest_offset = rules.end_offset - 1
    # Spark may run a task twice, even at once: every attempt has a folder of its own, and one of them counts.
    target = join(task.folder, WRITING, uuid.uuid4().hex)
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
    """The files of a cleaned segment, and their sizes."""
    paths = {kind: cleaned_path(target, base_offset, kind) for kind in SEGMENT_KINDS}
    return {kind: files.size(path) for kind, path in paths.items() if files.exists(path)}


def move_into_place(folder: str, base_offset: Offset, written: Written) -> None:
    """Take an attempt's files out of its folder, to where a proposal has them."""
    for kind in written.sizes:
        os.replace(cleaned_path(written.folder, base_offset, kind), proposed_path(folder, base_offset, kind))
