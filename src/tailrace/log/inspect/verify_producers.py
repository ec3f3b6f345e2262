"""Checks that the transaction indexes and producer snapshots agree with the log, by replaying it.

The replay is that of recovery. It is exact if it starts at offset 0 or at a readable snapshot, and if no batch is
missing. Otherwise (the log's start was deleted, compaction removed batches, some are damaged) only three rules are
checked. An aborted transaction whose records are in the log is in the index. An index entry ends at an abort marker. A
snapshot has every open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.inspect.findings import Finding
from tailrace.log.producers.producer_append import EndedTransaction
from tailrace.log.producers.producer_snapshot import CorruptSnapshot, SnapshotEntry, decode_snapshot
from tailrace.log.producers.producer_state import ProducerState
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.errors import KafkaError
from tailrace.model.ids import Offset, ProducerId, TopicPartition
from tailrace.model.topic_config import LONG_MAX
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import end_marker

Report = Callable[[Finding], None]


class ProducerCheck:
    """Replays one log. Call `start_segment`, `batch` for each batch, `end_segment`, and finally `finish`."""

    def __init__(self, files: Files, directory: str, partition: TopicPartition, report: Report) -> None:
        self._files = files
        self._directory = directory
        self._report = report
        self._states = ProducerStates(files, directory, partition, LONG_MAX)
        self._first_offset: Offset | None = None
        self._is_exact = False
        self._expected: list[AbortedTransaction] = []
        self._markers: dict[Offset, tuple[ProducerId, bool]] = {}  # offset → producer, and True for an abort
        self.snapshots_checked = 0

    def start_segment(self, base_offset: Offset) -> None:
        entries = self._read_snapshot(base_offset)
        if self._first_offset is None:
            self._first_offset = base_offset
            self._is_exact = base_offset == 0 or entries is not None
            for entry in entries or ():
                self._states.load(ProducerState.from_snapshot(entry))
        elif entries is not None:
            self._compare_snapshot(base_offset, entries)
        self._expected, self._markers = [], {}

    def gap(self) -> None:
        """Note that batches are missing or damaged here, so that the state is incomplete from now on."""
        self._is_exact = False

    def batch(self, header: BatchHeader, view: memoryview, path: str) -> None:
        if header.magic < 2 or header.producer_id < 0:
            return
        batch = RecordBatch(view)
        try:
            if batch.is_control:
                marker = end_marker(batch)
                if marker is not None:
                    self._markers[batch.base_offset] = batch.producer_id, not marker.is_commit
            append = self._states.prepare(batch.producer_id, Origin.REPLICATION)
            ended = append.add(batch)
        except (KafkaError, CorruptBatch) as error:
            self._report(Finding(path, str(error), header.position))
            self._is_exact = False
            return
        self._states.apply(append)
        if ended is not None:
            self._complete_transaction(ended)

    def _complete_transaction(self, ended: EndedTransaction) -> None:
        if ended.is_aborted:
            stable = self._states.last_stable_offset_after(ended)
            self._expected.append(AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable))
        self._states.complete(ended)

    def end_segment(self, end_offset: Offset, index_path: str, indexed: Iterable[AbortedTransaction]) -> None:
        """Compare a segment's transaction index with the replay."""
        found = list(indexed)
        self._states.high_watermark_moved(end_offset)
        by_end = {entry.last_offset: entry for entry in found}
        for expected in self._expected:
            entry = by_end.pop(expected.last_offset, None)
            if entry is None:
                self._report(
                    Finding(
                        index_path,
                        f"lacks the aborted transaction of producer {expected.producer_id}, offsets "
                        f"{expected.first_offset} to {expected.last_offset}: read_committed would show its records",
                    )
                )
            elif not self._is_same(expected, entry):
                self._report(Finding(index_path, f"has {_described(entry)}, but the log has {_described(expected)}"))
        for entry in by_end.values():
            self._check_unexpected(index_path, entry)

    def _is_same(self, expected: AbortedTransaction, entry: AbortedTransaction) -> bool:
        if self._is_exact:
            return entry == expected
        # Its first records, or older open transactions, may have been in the deleted part of the log.
        return entry.producer_id == expected.producer_id and entry.first_offset <= expected.first_offset

    def _check_unexpected(self, index_path: str, entry: AbortedTransaction) -> None:
        marker = self._markers.get(entry.last_offset)
        if marker == (entry.producer_id, True) and not self._is_exact:
            return  # its records are gone, but its marker is not
        if marker is None and not self._is_exact:
            return
        what = "no marker" if marker is None else "a marker of another kind or producer"
        self._report(Finding(index_path, f"has {_described(entry)}, but there is {what} at offset {entry.last_offset}"))

    def finish(self, end_offset: Offset) -> None:
        """Compare the snapshot of a clean stop, if there is one."""
        if end_offset in self._states.snapshots:
            entries = self._read_snapshot(end_offset)
            if entries is not None and self._first_offset is not None and end_offset != self._first_offset:
                self._compare_snapshot(end_offset, entries)

    # Snapshots

    def _snapshot_path(self, offset: Offset) -> str:
        return join(self._directory, file_names.segment_file(offset, file_names.PRODUCER_SNAPSHOT))

    def _read_snapshot(self, offset: Offset) -> list[SnapshotEntry] | None:
        if offset not in self._states.snapshots:
            return None
        path = self._snapshot_path(offset)
        try:
            return decode_snapshot(self._files.read(path), path)
        except CorruptSnapshot as error:
            self._report(Finding(path, str(error).removeprefix(f"{path}: ")))
        except FileNotFoundError:
            pass  # a running broker has removed it
        return None

    def _compare_snapshot(self, offset: Offset, entries: list[SnapshotEntry]) -> None:
        self.snapshots_checked += 1
        path = self._snapshot_path(offset)
        snapshot = {entry.producer_id: entry for entry in entries}
        for producer_id, state in self._states.producers.items():
            entry = snapshot.get(producer_id)
            if entry is None:
                # A producer that was idle for long enough expires, but never with an open transaction.
                if state.transaction_first_offset is not None:
                    self._report(
                        Finding(
                            path,
                            f"lacks producer {producer_id}, whose transaction is open since offset "
                            f"{state.transaction_first_offset}",
                        )
                    )
            elif self._is_exact and (difference := _difference(entry, state.to_snapshot())):
                self._report(Finding(path, f"producer {producer_id}: {difference} according to the log"))
        if self._is_exact:
            for producer_id in snapshot.keys() - self._states.producers.keys():
                self._report(Finding(path, f"has producer {producer_id}, which has no records in this log"))


def _described(entry: AbortedTransaction) -> str:
    return (
        f"producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}, "
        f"last stable offset {entry.last_stable_offset}"
    )


def _difference(snapshot: SnapshotEntry, log: SnapshotEntry) -> str:
    if snapshot.coordinator_epoch == -1:
        # A producer that expired and returned starts without one.
        log = log._replace(coordinator_epoch=-1)
    names = [name for name in SnapshotEntry._fields if getattr(snapshot, name) != getattr(log, name)]
    return ", ".join(
        f"{name.replace('_', ' ')} is {getattr(snapshot, name)}, not {getattr(log, name)}" for name in names
    )
