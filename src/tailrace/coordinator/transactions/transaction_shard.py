"""TransactionShard: the transactions whose ids belong to one partition of `__transaction_state`.

A decision about a `Transaction` becomes one record. The transaction changes only when that is committed
(`StateChange.on_done`), as in Kafka. So no response contains a state that a crash could undo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from tailrace.coordinator.shard import CoordinatorRecord, Part, StateChange
from tailrace.coordinator.transactions.ending import EndRequest, EndResult, plan_end
from tailrace.coordinator.transactions.markers import TransactionEnd
from tailrace.coordinator.transactions.transaction import (
    BUMPS_EPOCH_FROM,
    ENDING,
    Facts,
    Transaction,
    TransactionState,
    is_epoch_exhausted,
)
from tailrace.coordinator.transactions.transaction_records import encoded_record, facts_of
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerId, TopicPartition
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.messages import TransactionLogKey, TransactionLogValue

_S = TransactionState
R = TypeVar("R")


class ProducerIdAndEpoch(NamedTuple):
    producer_id: ProducerId
    producer_epoch: int


class InitAnswer(NamedTuple):
    """The response to InitProducerId. With an error, an open transaction is being aborted, and the client retries."""

    error: ErrorCode
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    server_version: Callable[[], int]  # the cluster's transaction.version
    new_producer_id: Callable[[int], ProducerId]  # of the time, now_ms
    send: Callable[[TransactionEnd, int], None]  # sends markers when an end is in the log


class TransactionShard:
    family = "transaction"

    def __init__(self, partition: int, coordinator_epoch: int, settings: TransactionSettings) -> None:
        self.partition = partition
        self.coordinator_epoch = coordinator_epoch
        self._settings = settings
        self.transactions: dict[str, Transaction] = {}
        self._ends: dict[str, TransactionEnd] = {}  # the ends of this shard whose markers are being written

    # Replay

    def replay(self, record: CoordinatorRecord, producer_id: int, producer_epoch: int) -> None:
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey), f"{key} is not the key of a transaction"
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue), f"{value} is not a transaction"
        try:
            facts = facts_of(value)
        except ValueError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{key.transactional_id}: {error}") from error
        self.transactions[key.transactional_id] = Transaction(key.transactional_id, facts)

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, is_committed: bool) -> None:
        """Ignore it: the log of transactions has no transactions itself."""

    def loaded(self, now_ms: int) -> Iterator[Part]:
        """Send the markers of decided ends again, since some may be missing."""
        for transaction in tuple(self.transactions.values()):
            if transaction.facts.state in ENDING:
                yield partial(self._send_markers, transaction)

    def unloaded(self, now_ms: int) -> Iterable[Part]:
        """Do nothing: no request waits here, and another coordinator resumes the transactions."""
        return ()

    # Steps

    def _step(
        self, transaction: Transaction, after: Facts, response: R, then: Callable[[int], None] | None = None
    ) -> StateChange[R]:
        def done(code: ErrorCode, now_ms: int) -> None:
            if code is not ErrorCode.NONE:
                transaction.give_up()
                return
            transaction.complete(after)
            if then is not None:
                then(now_ms)

        try:
            record = encoded_record(transaction.transactional_id, after, self._settings.server_version())
        except UnwritableMessage:
            transaction.give_up()
            if transaction.facts.producer_epoch == NO_PRODUCER_EPOCH:  # created by this request, and never written
                self.transactions.pop(transaction.transactional_id, None)
            raise
        return StateChange((record,), response, is_replayed=False, on_done=done)

    def _find(self, transactional_id: str) -> Transaction:
        found = self.transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"transactional id {transactional_id} is unknown")
        return found

    def _check_version(self, client_version: int) -> None:
        """Raise UNSUPPORTED_VERSION for a newer client if transaction.version is 0, which cannot record its version."""
        if client_version and not self._settings.server_version():
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "the cluster's transaction.version is 0, and this request needs at least 1: upgrade the feature",
            )

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, now_ms: int
    ) -> StateChange[InitAnswer]:
        """Handle a new instance of a producer, or one that continues after an error with its id and epoch
        (`expected`)."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            facts = Facts(
                _S.EMPTY, self._settings.new_producer_id(now_ms), timeout_ms=timeout_ms, last_update_ms=now_ms
            )
            transaction = self.transactions[transactional_id] = Transaction(transactional_id, facts)
        facts = transaction.facts
        if transaction.pending is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not _is_same_producer(facts, expected):
            raise KafkaError(
                ErrorCode.PRODUCER_FENCED,
                f"{transactional_id} has producer id {facts.producer_id}, not {expected.producer_id}",
            )
        if facts.state in ENDING:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if facts.state is _S.ONGOING:
            # The client retries, and gets an epoch above the fencing one.
            return self.fence(transaction, InitAnswer(ErrorCode.CONCURRENT_TRANSACTIONS), now_ms)
        if facts.is_epoch_exhausted and (expected is None or expected.producer_epoch == facts.producer_epoch):
            after = transaction.prepare_new_producer_id(
                self._settings.new_producer_id(now_ms), timeout_ms, now_ms, remember_epoch=expected is not None
            )
        else:
            epoch = None if expected is None else expected.producer_epoch
            after = transaction.prepare_new_epoch(timeout_ms, epoch, now_ms)
        return self._step(transaction, after, InitAnswer(ErrorCode.NONE, after.producer_id, after.producer_epoch))

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> StateChange[ErrorCode]:
        self._check_version(client_version)
        transaction = self._find(transactional_id)
        facts = transaction.facts
        if transaction.pending is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _check_producer(facts, producer)
        if facts.state is _S.ONGOING and facts.partitions.issuperset(partitions):
            return StateChange((), ErrorCode.NONE)
        after = transaction.prepare_add_partitions(partitions, client_version, now_ms)
        return self._step(transaction, after, ErrorCode.NONE)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return NONE for partitions of the producer's open transaction, TRANSACTION_ABORTABLE for others."""
        facts = self._find(transactional_id).facts
        _check_producer(facts, producer)
        return {
            one: ErrorCode.NONE if one in facts.partitions else ErrorCode.TRANSACTION_ABORTABLE for one in partitions
        }

    def end(self, transactional_id: str, request: EndRequest, now_ms: int) -> StateChange[EndResult]:
        self._check_version(request.client_version)
        transaction = self._find(transactional_id)
        plan = plan_end(transaction, request, lambda: self._settings.new_producer_id(now_ms), now_ms)
        if isinstance(plan, EndResult):
            return StateChange((), plan)
        next_identity = EndResult(*Transaction.after_end(plan)) if plan.bumps_epoch else EndResult()
        return self._step(transaction, plan, next_identity, lambda now_ms: self._send_markers(transaction, now_ms))

    def fence(self, transaction: Transaction, response: R, now_ms: int) -> StateChange[R]:
        """Abort an open transaction, with an epoch that its producer does not have."""
        server_version = self._settings.server_version()
        next_producer_id = NO_PRODUCER_ID
        if server_version >= BUMPS_EPOCH_FROM and transaction.facts.is_epoch_exhausted:
            next_producer_id = self._settings.new_producer_id(now_ms)
        after = transaction.prepare_fenced_abort(server_version, next_producer_id, now_ms)
        change = self._step(transaction, after, response, lambda now_ms: self._send_markers(transaction, now_ms))
        done = change.on_done
        assert done is not None

        def fenced(code: ErrorCode, now_ms: int) -> None:
            done(code, now_ms)
            transaction.note_fence(is_written=code is ErrorCode.NONE)

        return replace(change, on_done=fenced)

    # Markers

    def _send_markers(self, transaction: Transaction, now_ms: int) -> None:
        prepared = transaction.facts
        end = self._ends[transaction.transactional_id] = TransactionEnd(
            log_partition=self.partition,
            transactional_id=transaction.transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            is_commit=prepared.state is _S.PREPARE_COMMIT,
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=prepared.client_version,
            after=transaction.prepare_complete(now_ms),
            remaining=set(prepared.partitions),
        )
        self._settings.send(end, now_ms)

    def marker_written(self, end: TransactionEnd, partition: TopicPartition) -> None:
        if self._ends.get(end.transactional_id) is end:
            self.transactions[end.transactional_id].marker_written(partition)

    def markers_written(self, end: TransactionEnd) -> StateChange[None] | None:
        """Complete a transaction whose markers are all written. Return None if another shard or coordinator does it."""
        if self._ends.get(end.transactional_id) is not end:
            return None
        transaction = self.transactions[end.transactional_id]

        def done(code: ErrorCode, now_ms: int) -> None:
            # A failed write is retried; until then the step stays pending.
            if code is ErrorCode.NONE:
                transaction.complete(end.after)
                del self._ends[end.transactional_id]

        record = encoded_record(end.transactional_id, end.after, self._settings.server_version())
        return StateChange((record,), None, is_replayed=False, on_done=done)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self.transactions.values())


def _check_producer(facts: Facts, producer: ProducerIdAndEpoch) -> None:
    """Raise a KafkaError unless the producer owns the transaction and no end is pending."""
    if facts.producer_id != producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if facts.producer_epoch != producer.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if facts.state in ENDING:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _is_same_producer(facts: Facts, expected: ProducerIdAndEpoch) -> bool:
    """Return True if the producer may be the known one; its epoch is checked when it is raised."""
    return (
        facts.producer_epoch == NO_PRODUCER_EPOCH  # just created: the coordinator has no producer id of it yet
        or expected.producer_id == facts.producer_id
        # a retry of the call that gave it a new id, whose answer was lost
        or (expected.producer_id == facts.previous_producer_id and is_epoch_exhausted(expected.producer_epoch))
    )
