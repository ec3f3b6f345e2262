"""Verification of a Produce request's transaction at its coordinator, before the records are appended.

While the producer's previous transaction is still ending, the coordinator answers CONCURRENT_TRANSACTIONS. The broker
then retries a few times before it sends the error (KIP-890), so a producer that begins its next transaction at once
rarely sees it.

As in Kafka, the error for the producer depends on the version of the request. Temporary errors become
NOT_ENOUGH_REPLICAS, which every producer retries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.transaction_verification import TransactionVerification
from tailrace.broker.handling.appends import PARTS_PER_STEP
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.protocol.flat.produce import ProduceAsk
from tailrace.records.batch import HEADER_SIZE, LOG_OVERHEAD, PREFIX, TRANSACTIONAL_BIT, Buffer, RecordBatch
from tailrace.records.checks.produce_request import check_first_batch, check_produce_request
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

_ADDS_FROM = 12
_ABORTABLE_FROM = 11
_FIRST_WITH_TRANSACTIONS = 3
_MAGIC_POSITION = 16
_ATTRIBUTES_LOW_POSITION = 22

_TEMPORARY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Refusal(NamedTuple):
    code: ErrorCode
    message: str | None = None


Refusals: TypeAlias = dict[TopicPartition, Refusal]


def is_transactional(records: Buffer | None) -> bool:
    """Return True if records begin with a transactional batch."""
    return (
        records is not None
        and len(records) >= HEADER_SIZE
        and records[_MAGIC_POSITION] == 2
        and bool(records[_ATTRIBUTES_LOW_POSITION] & TRANSACTIONAL_BIT)
    )


def has_transactional_records(ask: ProduceAsk, version: int) -> Steps[bool]:
    """Return True if a request has records of a transaction.

    Like Kafka, read the first batch of each partition, and stop at the first transactional one. Raise KafkaError for
    the whole request if the length or magic of a batch is wrong.
    """
    if version < _FIRST_WITH_TRANSACTIONS:
        return False
    number = 0
    for _, partitions in ask.topics:
        for _, records in partitions:
            number += 1
            if not number % ITEMS_PER_STEP:
                yield
            if records is None:
                continue
            if len(records) < HEADER_SIZE or records[_MAGIC_POSITION] != 2 or not _is_whole(records):
                check_first_batch(records)
            if is_transactional(records):
                return True
    return False


def _is_whole(records: Buffer) -> bool:
    """Return True if a first batch of format 2 contains its header and does not exceed the records."""
    size: int = PREFIX.unpack_from(records)[1] + LOG_OVERHEAD
    return HEADER_SIZE <= size <= len(records)


def verify_produce(
    ask: ProduceAsk,
    version: int,
    resume: Callable[[Refusals, int], None],
    now_ms: int,
    *,
    config: BrokerConfig,
    controller: Controller,
    purgatory: Purgatory,
    transaction_verification: TransactionVerification,
) -> Steps[ErrorCode | None]:
    """Verify the transactional partitions of a request. `resume(refusals, now_ms)` is called, now or later.

    If the whole request is refused, return the error and do not call `resume`.
    """
    batches: dict[TopicPartition, RecordBatch] = {}
    for number, found in enumerate(_transactional_batches(ask, version, controller=controller), 1):
        if found is not None:
            batches[found[0]] = found[1]
        if not number % PARTS_PER_STEP:
            now_ms = yield
    producers = {ProducerIdAndEpoch(one.producer_id, one.producer_epoch) for one in batches.values()}
    if len(producers) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not batches:
        resume({}, now_ms)
        return None
    assert ask.transactional_id is not None, "a request without a transactional id was refused before"
    (producer,) = producers
    first_sequences = {key: batch.base_sequence for key, batch in batches.items()}
    verification = _Verification(
        purgatory,
        transaction_verification,
        _RetryLimits.of(config),
        ask.transactional_id,
        producer,
        first_sequences,
        version,
        now_ms,
        resume,
    )
    verification.ask(now_ms)
    return None


class _RetryLimits(NamedTuple):
    """The back-off and the total time of retries."""

    backoff_ms: int
    total_ms: int

    @staticmethod
    def of(config: BrokerConfig) -> _RetryLimits:
        total_ms = min(
            config.integer("add.partitions.to.txn.retry.backoff.max.ms"), config.integer("request.timeout.ms")
        )
        return _RetryLimits(config.integer("add.partitions.to.txn.retry.backoff.ms"), total_ms)


class _Verification(NamedTuple):
    """The verification of one request, with its retries."""

    purgatory: Purgatory
    verification: TransactionVerification
    patience: _RetryLimits
    transactional_id: str
    producer: ProducerIdAndEpoch
    first_sequences: dict[TopicPartition, int]
    version: int
    began_ms: int
    resume: Callable[[Refusals, int], None]

    def ask(self, now_ms: int) -> None:
        self.verification.verify(
            self.transactional_id,
            self.producer,
            self.first_sequences,
            self.answered,
            now_ms,
            is_added=self.version >= _ADDS_FROM,
            is_abortable=self.version >= _ABORTABLE_FROM,
        )

    def answered(self, errors: dict[TopicPartition, ErrorCode], now_ms: int) -> None:
        is_patient = now_ms < self.began_ms + self.patience.total_ms
        if is_patient and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values():
            self.purgatory.watch(_DelayedRetry(now_ms + self.patience.backoff_ms, self.ask), (), now_ms)
            return
        self.resume({key: _refusal(error, self.version) for key, error in errors.items()}, now_ms)


class _DelayedRetry(DelayedOperation):
    """A retry after the back-off."""

    __slots__ = ("_ask",)

    def __init__(self, deadline_ms: int, ask: Callable[[int], None]) -> None:
        super().__init__(deadline_ms)
        self._ask = ask

    def try_complete(self, now_ms: int) -> bool:
        return False

    def expire(self, now_ms: int) -> None:
        self._ask(now_ms)


def _transactional_batches(
    ask: ProduceAsk, version: int, *, controller: Controller
) -> Iterator[tuple[TopicPartition, RecordBatch] | None]:
    """Yield the valid transactional batches of existing partitions, and None for all others.

    Invalid batches and unknown partitions are refused later, when records are placed.
    """
    image = controller.image
    for topic, partitions in ask.topics:
        if isinstance(topic, bytes):
            found = image.topics_by_id.get(topic)
            name = found.name if found else ""
        else:
            name = topic
        known = image.topics[name].partitions if name in image.topics else {}
        for index, records in partitions:
            is_verified = index in known and _is_valid(records, version)
            yield (TopicPartition(name, index), RecordBatch(records)) if is_verified else None


def _is_valid(records: Buffer | None, version: int) -> bool:
    if records is None or not is_transactional(records):
        return False
    try:
        check_produce_request(records, version)
    except KafkaError:
        return False
    return True


def _refusal(error: ErrorCode, version: int) -> Refusal:
    """Return the refusal for the producer that stands for the coordinator's error, as in Kafka."""
    if error is ErrorCode.INVALID_TXN_STATE:
        return Refusal(error, "Partition was not added to the transaction")
    if error in _TEMPORARY or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDS_FROM):
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}",
        )
    return Refusal(error)
