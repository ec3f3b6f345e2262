"""ProducerStates: what each idempotent or transactional producer last wrote here, and which transactions are open.

Invariants
    1. `end_offset` is the offset up to which the states are right; a snapshot at it says exactly this.
    2. An open transaction is in `open_transactions` by its first offset. Once its marker is appended it moves to
       `ended_transactions`, and leaves there when the high watermark has passed the marker.
    3. The first unstable offset, past which read_committed does not read, is the smallest key of the two.

A producer's last five batches are remembered, so that a retry of any of them is known as a duplicate.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tailrace.log import file_names
from tailrace.log.files import Files, join
from tailrace.log.position import LogPosition
from tailrace.log.producer_snapshot import CorruptSnapshot, SnapshotEntry, decode_snapshot, encode_snapshot
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Offset,
    ProducerId,
    TopicPartition,
)
from tailrace.model.topic_config import INT_MAX
from tailrace.records.batch import RecordBatch
from tailrace.records.control import EndTransactionMarker, parse_end_transaction_marker

_log = logging.getLogger(__name__)

BATCHES_REMEMBERED = 5
_EPOCH_MAX = 2**15 - 1


class Origin(Enum):
    """Who appends: rules differ for clients, the coordinators, the Raft leader and a leader's copy."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT_LEADER = "raft_leader"
    REPLICATION = "replication"


class BatchMemory(NamedTuple):
    """A batch that was appended: enough to answer its retry."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & INT_MAX

    @property
    def first_offset(self) -> Offset:
        return self.last_offset - self.offset_delta


class EndedTransaction(NamedTuple):
    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    is_aborted: bool


@dataclass(slots=True)
class OpenTransaction:
    producer_id: ProducerId
    first: LogPosition
    last_offset: Offset | None = None


@dataclass(slots=True)
class ProducerState:
    producer_id: ProducerId
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    transaction_first_offset: Offset | None = None
    batches: deque[BatchMemory] = field(default_factory=deque)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        return self.batches[-1].last_offset if self.batches else -1

    def duplicate_of(self, batch: RecordBatch) -> BatchMemory | None:
        """The remembered batch that this one repeats."""
        if batch.producer_epoch == self.producer_epoch:
            first, last = batch.base_sequence, batch.last_sequence
            for memory in self.batches:
                if memory.first_sequence == first and memory.last_sequence == last:
                    return memory
        return None

    def enter_epoch(self, epoch: int) -> None:
        """A new epoch starts its own sequence; what the old one wrote can no longer be repeated."""
        if self.producer_epoch != epoch:
            self.batches.clear()
            self.producer_epoch = epoch

    def remember(self, batch: BatchMemory) -> None:
        if len(self.batches) == BATCHES_REMEMBERED:
            self.batches.popleft()
        self.batches.append(batch)

    def merge(self, newer: ProducerState) -> None:
        self.enter_epoch(newer.producer_epoch)
        for batch in newer.batches:
            self.remember(batch)
        self.coordinator_epoch = newer.coordinator_epoch
        self.transaction_first_offset = newer.transaction_first_offset
        self.last_timestamp = newer.last_timestamp

    def to_snapshot(self) -> SnapshotEntry:
        first = self.transaction_first_offset
        return SnapshotEntry(
            self.producer_id,
            self.producer_epoch,
            self.last_sequence,
            self.last_offset,
            self.batches[-1].offset_delta if self.batches else 0,
            self.last_timestamp,
            self.coordinator_epoch,
            -1 if first is None else first,
        )

    @classmethod
    def from_snapshot(cls, entry: SnapshotEntry) -> ProducerState:
        first = entry.current_transaction_first_offset
        state = cls(
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.timestamp,
            first if first >= 0 else None,
        )
        if entry.last_offset >= 0:
            memory = BatchMemory(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
            state.batches.append(memory)
        return state


class ProducerAppend:
    """The batches of one producer in one append: checked one by one, applied together by `ProducerStates.apply`."""

    def __init__(self, partition: TopicPartition, current: ProducerState, origin: Origin) -> None:
        self.partition = partition
        self.current = current
        self.origin = origin
        self.updated = ProducerState(
            current.producer_id,
            current.producer_epoch,
            current.coordinator_epoch,
            current.last_timestamp,
            current.transaction_first_offset,
        )
        self.started: list[OpenTransaction] = []

    def add(
        self, batch: RecordBatch, first: LogPosition | None = None, transaction_version: int = 0
    ) -> EndedTransaction | None:
        """Take a batch; the transaction it ends, if it is a marker. KafkaError when it may not be appended."""
        if batch.is_control:
            marker = parse_end_transaction_marker(batch)
            return self._add_marker(batch, marker, transaction_version) if marker else None
        self._check_epoch(batch, 0)
        if self.origin is Origin.CLIENT:
            self._check_sequence(batch)
        self.updated.enter_epoch(batch.producer_epoch)
        self.updated.remember(
            BatchMemory(batch.last_sequence, batch.last_offset, batch.last_offset_delta, batch.max_timestamp)
        )
        self.updated.last_timestamp = batch.max_timestamp
        if self.updated.transaction_first_offset is not None and not batch.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has an open transaction in {self.partition} "
                f"and wrote a non-transactional batch at offset {batch.base_offset}",
            )
        if self.updated.transaction_first_offset is None and batch.is_transactional:
            self.updated.transaction_first_offset = batch.base_offset
            self.started.append(OpenTransaction(batch.producer_id, first or LogPosition(batch.base_offset)))
        return None

    def _add_marker(
        self, batch: RecordBatch, marker: EndTransactionMarker, transaction_version: int
    ) -> EndedTransaction | None:
        self._check_epoch(batch, transaction_version)
        if self.updated.coordinator_epoch > marker.coordinator_epoch and self.origin is not Origin.REPLICATION:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} of producer {batch.producer_id} in {self.partition} "
                f"is older than {self.updated.coordinator_epoch}",
            )
        first = self.updated.transaction_first_offset
        self.updated.enter_epoch(batch.producer_epoch)
        self.updated.coordinator_epoch = marker.coordinator_epoch
        self.updated.transaction_first_offset = None
        self.updated.last_timestamp = marker.timestamp
        if first is None:
            return None
        return EndedTransaction(batch.producer_id, first, batch.base_offset, marker.is_abort)

    def _check_epoch(self, batch: RecordBatch, transaction_version: int) -> None:
        epoch, known = batch.producer_epoch, self.updated.producer_epoch
        if transaction_version >= 2:
            # Since KIP-890 every transaction ends under a new epoch, but for a retried marker and at the last epoch.
            if epoch == known and (self.updated.transaction_first_offset is None or epoch == _EPOCH_MAX):
                return
            fenced = epoch <= known
        else:
            fenced = epoch < known
        if fenced and self.origin is not Origin.REPLICATION:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {batch.producer_id} in {self.partition} is fenced by epoch {known}",
            )

    def _check_sequence(self, batch: RecordBatch) -> None:
        first, known_epoch = batch.base_sequence, self.updated.producer_epoch
        if batch.producer_epoch != known_epoch:
            in_order = first == 0 or known_epoch == NO_PRODUCER_EPOCH
            last = NO_SEQUENCE
        else:
            last = self.updated.last_sequence if self.updated.batches else self.current.last_sequence
            in_order = (
                self.current.producer_epoch == NO_PRODUCER_EPOCH
                or first == last + 1
                or (first == 0 and last == INT_MAX)
            )
        if not in_order:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} in {self.partition}: sequence {first} does not follow {last} "
                f"(epoch {batch.producer_epoch}, known epoch {known_epoch})",
            )


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
        self.end_offset: Offset = 0
        self._last_snapshot_offset: Offset = 0
        self._hash_capacity = 16
        self.snapshots = self._find_snapshots()

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
        """Write the states to a file named by `end_offset`, unless that one is written already."""
        if self.end_offset <= self._last_snapshot_offset:
            return None
        data = encode_snapshot(state.to_snapshot() for state in self._in_hash_order())
        self._files.write(self.snapshot_path(self.end_offset), data, sync=sync)
        self.snapshots.add(self.end_offset)
        self._last_snapshot_offset = self.end_offset
        return self.end_offset

    def _in_hash_order(self) -> list[ProducerState]:
        """The order in which Apache Kafka's hash map lists producers, which its snapshots show."""
        if len(self.producers) < 2:
            return list(self.producers.values())
        mask = self._hash_capacity - 1
        return sorted(self.producers.values(), key=lambda state: _java_hash(state.producer_id) & mask)

    def remove_snapshot(self, offset: Offset) -> None:
        self.snapshots.discard(offset)
        self._files.remove(self.snapshot_path(offset))

    def mark_snapshot_deleted(self, offset: Offset) -> str | None:
        """Rename a snapshot away; the path to remove later, if there was one."""
        if offset not in self.snapshots:
            return None
        self.snapshots.discard(offset)
        path = self.snapshot_path(offset, file_names.DELETED)
        if not self._files.exists(self.snapshot_path(offset)):
            return None
        self._files.replace(self.snapshot_path(offset), path)
        return path

    def remove_stray_snapshots(self, base_offsets: list[Offset]) -> None:
        """Drop snapshots that belong to no segment, but for the latest if it lies past them all: the clean stop's."""
        self.snapshots = self._find_snapshots()
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
        """Go back to the latest snapshot within the log's bounds; the caller replays the log from `end_offset` on."""
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
            self._last_snapshot_offset = self.end_offset = offset
            return
        self._last_snapshot_offset = self.end_offset = log_start_offset

    def load(self, state: ProducerState) -> None:
        self._put(state)
        if state.transaction_first_offset is not None:
            first = state.transaction_first_offset
            self.open_transactions[first] = OpenTransaction(state.producer_id, LogPosition(first))

    def truncate_fully(self, offset: Offset) -> None:
        self._clear()
        for snapshot in list(self.snapshots):
            self.remove_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.end_offset = offset

    def _clear(self) -> None:
        self.producers.clear()
        self.open_transactions.clear()
        self.ended_transactions.clear()

    # Appending

    def prepare(self, producer_id: ProducerId, origin: Origin) -> ProducerAppend:
        current = self.producers.get(producer_id) or ProducerState(producer_id)
        return ProducerAppend(self.partition, current, origin)

    def apply(self, append: ProducerAppend) -> None:
        known = self.producers.get(append.updated.producer_id)
        if known is None:
            self._put(append.updated)
        else:
            known.merge(append.updated)
        for transaction in append.started:
            self.open_transactions[transaction.first.offset] = transaction

    def _put(self, state: ProducerState) -> None:
        self.producers[state.producer_id] = state
        while len(self.producers) > self._hash_capacity * 3 // 4:
            self._hash_capacity *= 2

    def last_stable_offset_after(self, ended: EndedTransaction) -> Offset:
        """The last stable offset once this transaction is over: where the next open one of another producer starts."""
        others = [
            first
            for first, transaction in self.open_transactions.items()
            if transaction.producer_id != ended.producer_id
        ]
        return min(others, default=ended.last_offset + 1)

    def complete(self, ended: EndedTransaction) -> None:
        transaction = self.open_transactions.pop(ended.first_offset)
        transaction.last_offset = ended.last_offset
        self.ended_transactions[ended.first_offset] = transaction

    # As time and the log go on

    @property
    def first_unstable(self) -> LogPosition | None:
        firsts = [
            transactions[min(transactions)].first
            for transactions in (self.open_transactions, self.ended_transactions)
            if transactions
        ]
        return min(firsts, default=None)

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

    def remove_expired(self, now_ms: int) -> None:
        expired = [state.producer_id for state in self.producers.values() if self._is_expired(state, now_ms)]
        for producer_id in expired:
            del self.producers[producer_id]


def _java_hash(value: int) -> int:
    """java.lang.Long's hash code, spread as java.util.HashMap does."""
    code = (value ^ (value >> 32)) & 0xFFFFFFFF
    return code ^ (code >> 16)
