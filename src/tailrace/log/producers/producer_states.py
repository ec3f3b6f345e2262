"""ProducerStates: the producers of a partition, their open transactions, and the snapshots of both.

Invariants
    1. `end_offset` is the offset up to which the states are complete. A snapshot at it has exactly these states.
    2. An open transaction is in `open_transactions`, ordered by first offset. When its marker is appended it moves to
       `ended_transactions`, and leaves them when the high watermark has passed the marker.
    3. The first unstable offset, which bounds read_committed, is the smallest key of the two.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.producers.pending_snapshot import PRODUCERS_MAX, PendingSnapshot
from tailrace.log.producers.producer_append import EndedTransaction, OpenTransaction, ProducerAppend
from tailrace.log.producers.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from tailrace.log.producers.producer_state import ProducerState
from tailrace.log.producers.producer_verification import Verification
from tailrace.log.segments.position import LogPosition
from tailrace.log.upkeep.deferred import Deferred
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, ProducerId, TopicPartition
from tailrace.model.java.java_order import FIRST_CAPACITY, grown_capacity, long_hash_order
from tailrace.model.steps import Steps, in_pieces, run_steps
from tailrace.records.batch import RecordBatch
from tailrace.records.checks.validation import Origin

_log = logging.getLogger(__name__)
PRODUCERS_PER_STEP = 2_000  # checked for their expiry between two pauses


class ProducerStates:
    def __init__(
        self, files: Files, directory: str, partition: TopicPartition, producer_expiration_ms: int = 86_400_000
    ) -> None:
        self._files = files
        self.directory = directory
        self.partition = partition
        self.producer_expiration_ms = producer_expiration_ms
        self.producers: dict[ProducerId, ProducerState] = {}
        self.open_transactions: dict[Offset, OpenTransaction] = {}
        self.ended_transactions: dict[Offset, OpenTransaction] = {}
        self.verifications: dict[ProducerId, Verification] = {}
        self.end_offset: Offset = 0
        self._last_snapshot_offset: Offset = 0
        self._hash_capacity = FIRST_CAPACITY
        self._unsynced_snapshots: list[Offset] = []
        self._pending: PendingSnapshot | None = None
        self.snapshots = self._find_snapshots()

    def advance_to(self, offset: Offset) -> None:
        """Note that the states contain all records below an offset."""
        self.end_offset = offset

    def moved_to(self, directory: str) -> None:
        """Record that the partition's folder was renamed."""
        self.directory = directory

    # Snapshots on disk

    def _find_snapshots(self) -> set[Offset]:
        found = set()
        for entry in self._files.entries(self.directory):
            parsed = file_names.parse_segment_file(entry.name)
            if parsed and parsed[1] == file_names.PRODUCER_SNAPSHOT and not parsed[2]:
                found.add(parsed[0])
        return found

    def snapshot_path(self, offset: Offset, suffix: str = "") -> str:
        return join(self.directory, file_names.segment_file(offset, file_names.PRODUCER_SNAPSHOT, suffix))

    @property
    def latest_snapshot_offset(self) -> Offset | None:
        return max(self.snapshots, default=None)

    def take_snapshot(self, *, sync: bool = True) -> Offset | None:
        """Write the states to a file named by `end_offset`, unless that file exists already."""
        if self.end_offset <= self._last_snapshot_offset:
            return None
        data = encode_snapshot(
            self.producers[key].to_snapshot() for key in long_hash_order(self.producers, self._hash_capacity)
        )
        self._write_snapshot(self.end_offset, data, sync=sync)
        return self.end_offset

    def _write_snapshot(self, offset: Offset, data: bytes, *, sync: bool) -> None:
        self._files.write(self.snapshot_path(offset), data, sync=sync)
        if not sync:
            self._unsynced_snapshots.append(offset)
        self.snapshots.add(offset)
        self._last_snapshot_offset = offset

    def snapshot_soon(self, deferred: Deferred, now_ms: int) -> None:
        """Take a snapshot without a sync. That of many producers is encoded in pieces, as deferred work.

        Until it is written, later calls take none. Recovery reads more of the log if a snapshot is missing.
        """
        if self._pending is not None or self.end_offset <= self._last_snapshot_offset:
            return
        if len(self.producers) <= PRODUCERS_MAX:
            self.take_snapshot(sync=False)
        else:
            self._pending = PendingSnapshot(self.end_offset, self.producers)
            deferred.add(now_ms, partial(self._continue_snapshot, self._pending, deferred, now_ms))

    def _continue_snapshot(self, pending: PendingSnapshot, deferred: Deferred, now_ms: int) -> None:
        if pending is not self._pending:
            return  # the log was truncated below it, or the snapshot is no longer needed
        data = pending.encode_some()
        if data is None:
            deferred.add(now_ms, partial(self._continue_snapshot, pending, deferred, now_ms))
        else:
            self._pending = None
            if pending.offset > self._last_snapshot_offset:
                self._write_snapshot(pending.offset, data, sync=False)

    def keep_for_snapshot(self, producer_ids: Iterable[ProducerId]) -> None:
        """Note that these producers are about to change."""
        if self._pending is not None:
            for producer_id in producer_ids:
                self._pending.keep(producer_id)

    def _drop_pending(self, offset: Offset) -> None:
        if self._pending is not None and self._pending.offset == offset:
            self._pending = None

    def sync_snapshots(self) -> None:
        """Sync the snapshots that were written without a sync."""
        while self._unsynced_snapshots:
            path = self.snapshot_path(self._unsynced_snapshots[-1])
            if self._files.exists(path):
                file = self._files.open(path)
                try:
                    file.sync()
                finally:
                    file.close()
            self._unsynced_snapshots.pop()

    def take_unsynced(self) -> list[str]:
        """Return the paths of snapshots that were written without a sync. The caller must sync them."""
        paths = [self.snapshot_path(offset) for offset in self._unsynced_snapshots]
        self._unsynced_snapshots.clear()
        return paths

    def remove_snapshot(self, offset: Offset) -> None:
        self._drop_pending(offset)
        self.snapshots.discard(offset)
        self._files.remove(self.snapshot_path(offset))

    def mark_snapshot_deleted(self, offset: Offset) -> str | None:
        """Rename a snapshot. Return its new path, to be removed later, or None if there was no snapshot."""
        self._drop_pending(offset)
        if offset not in self.snapshots:
            return None
        self.snapshots.discard(offset)
        path = self.snapshot_path(offset, file_names.DELETED)
        if not self._files.exists(self.snapshot_path(offset)):
            return None
        self._files.replace(self.snapshot_path(offset), path)
        return path

    def remove_stray_snapshots(self, base_offsets: list[Offset]) -> None:
        """Remove snapshots that belong to no segment, except for the latest if it is after all segments: it is from a
        clean stop."""
        known = set(base_offsets)
        stray = sorted(offset for offset in self.snapshots if offset not in known)
        if stray and not (known and stray[-1] < max(known)):
            stray.pop()
        for offset in stray:
            self.remove_snapshot(offset)

    # Loading

    @property
    def is_empty(self) -> bool:
        return not self.producers and not self.ended_transactions

    def truncate_and_reload(self, log_start_offset: Offset, log_end_offset: Offset, now_ms: int) -> None:
        """Return to the latest snapshot within the log's bounds. The caller replays the log from `end_offset` on."""
        for offset in sorted(self.snapshots):
            if offset > log_end_offset or offset <= log_start_offset:
                self.remove_snapshot(offset)
        if log_end_offset != self.end_offset:
            self._clear()
            self._load_latest_snapshot(log_start_offset, now_ms)
        else:
            self.log_start_moved(log_start_offset)

    def _load_latest_snapshot(self, log_start_offset: Offset, now_ms: int) -> None:
        while (offset := self.latest_snapshot_offset) is not None:
            path = self.snapshot_path(offset)
            try:
                entries = decode_snapshot(self._files.read(path), path)
            except CorruptSnapshot as error:
                _log.warning("producer snapshot dropped, the log is read instead: %s", error)
                self.remove_snapshot(offset)
                continue
            for entry in entries:
                state = ProducerState.from_snapshot(entry)
                if not self._is_expired(state, now_ms):
                    self.load(state)
            self._sort_open_transactions()
            self._last_snapshot_offset = self.end_offset = offset
            return
        self._last_snapshot_offset = self.end_offset = log_start_offset

    def load(self, state: ProducerState) -> None:
        self._add_state(state)
        if state.transaction_first_offset is not None:
            first = state.transaction_first_offset
            self.open_transactions[first] = OpenTransaction(state.producer_id, LogPosition(first))

    def truncate_fully(self, offset: Offset) -> None:
        self._clear()
        for snapshot in list(self.snapshots):
            self.remove_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.end_offset = offset

    def begin_with(self, snapshot: bytes, offset: Offset) -> None:
        """Take the states of a snapshot at `offset`, where an empty log begins."""
        self._clear()
        for entry in decode_snapshot(snapshot, self.snapshot_path(offset)):
            self.load(ProducerState.from_snapshot(entry))
        self._sort_open_transactions()
        self.end_offset = offset
        self._write_snapshot(offset, snapshot, sync=False)

    def _clear(self) -> None:
        self._pending = None
        self.producers.clear()
        self.open_transactions.clear()
        self.ended_transactions.clear()

    # Appending

    def prepare(self, producer_id: ProducerId, origin: Origin) -> ProducerAppend:
        current = self.producers.get(producer_id) or ProducerState(producer_id)
        return ProducerAppend(self.partition, current, origin, self.verifications.get(producer_id))

    # Verification

    def needs_verification(
        self, producer_id: ProducerId, epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> bool:
        """Return True if a transactional batch begins a transaction here, which its coordinator must first confirm."""
        state = self.producers.get(producer_id)
        if state is not None:
            if epoch < state.producer_epoch:
                raise KafkaError(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"epoch {epoch} of producer {producer_id} in {self.partition} is fenced by {state.producer_epoch}",
                )
            if state.transaction_first_offset is not None and state.producer_epoch == epoch:
                return False
        known = self.verifications.get(producer_id)
        if known is None:
            self.verifications[producer_id] = Verification(now_ms, sequence, epoch, bumps_epoch)
        else:
            known.add(sequence, epoch)
        return True

    def verified(self, batch: RecordBatch) -> None:
        """Record a transactional batch or marker, which ends the verification that waited for it."""
        known = self.verifications.get(batch.producer_id)
        if known is None:
            return
        begins_next = known.bumps_epoch and batch.is_control and batch.producer_epoch == known.epoch
        if not begins_next:
            del self.verifications[batch.producer_id]

    def apply_all(self, appends: dict[ProducerId, ProducerAppend]) -> None:
        """Apply the changes of several producers, in the order in which Kafka's map lists them."""
        # The map is filled by computeIfAbsent, which puts a new key first in its bucket.
        for producer_id in long_hash_order(reversed(appends), grown_capacity(FIRST_CAPACITY, len(appends))):
            self.apply(appends[producer_id])
        if len(appends) > 1:
            self._sort_open_transactions()

    def apply(self, append: ProducerAppend) -> None:
        known = self.producers.get(append.updated.producer_id)
        if known is None:
            self._add_state(append.updated)
        else:
            self.keep_for_snapshot((append.updated.producer_id,))
            known.merge(append.updated)
        for transaction in append.started:
            self.open_transactions[transaction.first.offset] = transaction

    def _sort_open_transactions(self) -> None:
        self.open_transactions = dict(sorted(self.open_transactions.items()))

    def _add_state(self, state: ProducerState) -> None:
        self.producers[state.producer_id] = state
        self._hash_capacity = grown_capacity(self._hash_capacity, len(self.producers))

    def last_stable_offset_after(self, ended: EndedTransaction) -> Offset:
        """Return the last stable offset after this transaction has ended: the start of the next open one of another
        producer."""
        for first, transaction in self.open_transactions.items():
            if transaction.producer_id != ended.producer_id:
                return first
        return ended.last_offset + 1

    def complete(self, ended: EndedTransaction) -> None:
        transaction = self.open_transactions.pop(ended.first_offset)
        transaction.end(ended.last_offset)
        self.ended_transactions[ended.first_offset] = transaction

    # Moving bounds and expiry

    @property
    def first_unstable(self) -> LogPosition | None:
        """The start of the first transaction that is open, or whose end is after the high watermark."""
        first = next(iter(self.open_transactions.values())).first if self.open_transactions else None
        if self.ended_transactions:
            ended = self.ended_transactions[min(self.ended_transactions)].first
            first = ended if first is None else min(first, ended)
        return first

    def high_watermark_moved(self, high_watermark: Offset) -> None:
        if self.ended_transactions:
            self.ended_transactions = {
                first: transaction
                for first, transaction in self.ended_transactions.items()
                if transaction.last_offset is None or transaction.last_offset >= high_watermark
            }

    def log_start_moved(self, log_start_offset: Offset) -> None:
        self.high_watermark_moved(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    def _is_expired(self, state: ProducerState, now_ms: int) -> bool:
        return state.transaction_first_offset is None and now_ms - state.last_timestamp >= self.producer_expiration_ms

    def expire_after(self, expiration_ms: int) -> None:
        """Set the idle time after which a producer expires."""
        self.producer_expiration_ms = expiration_ms

    def remove_expired(self, now_ms: int) -> None:
        run_steps(self.expire(now_ms), now_ms)

    def expire(self, now_ms: int) -> Steps[None]:
        """Remove the producers that have been idle for too long."""
        yield from in_pieces(partial(self._remove_expired, now_ms), list(self.producers), PRODUCERS_PER_STEP)
        if self.verifications:
            first_ms = now_ms - self.producer_expiration_ms
            self.verifications = {key: one for key, one in self.verifications.items() if one.began_ms > first_ms}

    def _remove_expired(self, now_ms: int, producer_ids: Sequence[ProducerId]) -> None:
        for producer_id in producer_ids:
            state = self.producers.get(producer_id)
            if state is not None and self._is_expired(state, now_ms):
                del self.producers[producer_id]
