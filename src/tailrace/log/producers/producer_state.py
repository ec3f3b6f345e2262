"""ProducerState: the last batches of one idempotent or transactional producer in a partition.

The last five batches are kept, so that a retry of any of them is recognized as a duplicate.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from tailrace.log.producers.producer_snapshot import SnapshotEntry
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, Offset, ProducerId
from tailrace.model.topic_config import INT_MAX
from tailrace.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch

BATCHES_REMEMBERED = 5


def is_next_in_sequence(first: int, last: int) -> bool:
    """Return True if a batch that begins with sequence number `first` follows one that ends with `last`."""
    return first == (last + 1) & INT_MAX  # sequence numbers wrap to 0


class AppendedBatch(NamedTuple):
    """The facts about an appended batch that are needed to answer its retry."""

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


@dataclass(slots=True)
class ProducerState:
    producer_id: ProducerId
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    transaction_first_offset: Offset | None = None
    batches: deque[AppendedBatch] = field(default_factory=deque)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        return self.batches[-1].last_offset if self.batches else -1

    def duplicate_of(self, batch: RecordBatch) -> AppendedBatch | None:
        """Return the kept batch that this one duplicates."""
        if batch.producer_epoch == self.producer_epoch:
            first, last = batch.base_sequence, batch.last_sequence
            for memory in self.batches:
                if memory.first_sequence == first and memory.last_sequence == last:
                    return memory
        return None

    def is_continued_by(self, batch: RecordBatch, last_placed: RecordBatch | None = None) -> bool:
        """Return True if a batch is the next in sequence, of the same epoch, and neither begins nor ends a transaction.

        `last_placed` is the producer's last batch that continues this state and is not yet recorded in it.
        """
        in_transaction = 0 if self.transaction_first_offset is None else TRANSACTIONAL_BIT
        return (
            batch.producer_epoch == self.producer_epoch
            and is_next_in_sequence(
                batch.base_sequence, self.last_sequence if last_placed is None else last_placed.last_sequence
            )
            and batch.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) == in_transaction
        )

    def note_next(self, batch: RecordBatch) -> None:
        """Record the next batch of the current epoch."""
        timestamp = self.last_timestamp = batch.max_timestamp
        self.remember(AppendedBatch(batch.last_sequence, batch.last_offset, batch.last_offset_delta, timestamp))

    def enter_epoch(self, epoch: int) -> None:
        """Start a new epoch with its own sequence. Retries of the old epoch's batches are no longer recognized as
        duplicates."""
        if self.producer_epoch != epoch:
            self.batches.clear()
            self.producer_epoch = epoch

    def remember(self, batch: AppendedBatch) -> None:
        if len(self.batches) == BATCHES_REMEMBERED:
            self.batches.popleft()
        self.batches.append(batch)

    def begin_transaction(self, first_offset: Offset) -> None:
        self.transaction_first_offset = first_offset

    def end_transaction(self, coordinator_epoch: int, timestamp: int) -> None:
        """Record the marker that ends the open transaction."""
        self.coordinator_epoch, self.last_timestamp = coordinator_epoch, timestamp
        self.transaction_first_offset = None

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
            memory = AppendedBatch(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
            state.batches.append(memory)
        return state
