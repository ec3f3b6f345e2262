"""ProducerAppend: checks if a producer's batches may be appended, and collects the changes of its state.

A client must send each batch once and in sequence. A newer epoch fences older ones. A transactional batch opens a
transaction, and a marker ends it. A follower accepts what its leader accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tailrace.log.producers.producer_state import ProducerState, is_next_in_sequence
from tailrace.log.producers.producer_verification import Verification
from tailrace.log.segments.position import LogPosition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_SEQUENCE, Offset, ProducerId, TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import EndTransactionMarker, end_marker

_EPOCH_MAX = 2**15 - 1


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

    def end(self, last_offset: Offset) -> None:
        """Note the marker that ends the transaction."""
        self.last_offset = last_offset


class ProducerAppend:
    """The batches of one producer in one append. They are checked one by one, and `ProducerStates.apply` applies them
    together."""

    def __init__(
        self,
        partition: TopicPartition,
        current: ProducerState,
        origin: Origin,
        verification: Verification | None = None,
    ) -> None:
        self.partition = partition
        self.current = current
        self.origin = origin
        self._verification = verification
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
        """Check a batch. Return the transaction that it ends, if it is a marker. Raise KafkaError if it may not be
        appended."""
        if batch.is_control:
            marker = end_marker(batch)
            return self._add_marker(batch, marker, transaction_version) if marker else None
        self._check_epoch(batch, 0)
        if self.origin is Origin.CLIENT:
            self._check_sequence(batch)
        self.updated.enter_epoch(batch.producer_epoch)
        self.updated.note_next(batch)
        if self.updated.transaction_first_offset is not None and not batch.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has an open transaction in {self.partition} "
                f"and wrote a non-transactional batch at offset {batch.base_offset}",
            )
        if self.updated.transaction_first_offset is None and batch.is_transactional:
            self.updated.begin_transaction(batch.base_offset)
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
        self.updated.end_transaction(marker.coordinator_epoch, batch.max_timestamp)
        if first is None:
            return None
        return EndedTransaction(batch.producer_id, first, batch.base_offset, not marker.is_commit)

    def _check_epoch(self, batch: RecordBatch, transaction_version: int) -> None:
        epoch, known = batch.producer_epoch, self.updated.producer_epoch
        if transaction_version >= 2:
            # Since KIP-890 every transaction ends under a new epoch, except for a retried marker and at the last epoch.
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
        verification = self._verification
        if verification is not None and (
            first > verification.lowest_sequence
            or (verification.bumps_epoch and first != 0 and not self.current.batches)
        ):
            in_order, last = False, verification.lowest_sequence - 1
        elif batch.producer_epoch != known_epoch:
            in_order = first == 0 or known_epoch == NO_PRODUCER_EPOCH
            last = NO_SEQUENCE
        else:
            last = self.updated.last_sequence if self.updated.batches else self.current.last_sequence
            in_order = self.current.producer_epoch == NO_PRODUCER_EPOCH or is_next_in_sequence(first, last)
        if not in_order:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} in {self.partition}: sequence {first} does not follow {last} "
                f"(epoch {batch.producer_epoch}, known epoch {known_epoch})",
            )
