"""Before a transactional batch opens a transaction in a partition, the coordinator has to know of it.

A batch that is late, of a transaction that has ended, would otherwise open one that nobody ends, and hold back
everybody who reads committed records. Producers of Produce version 12 and more do not tell the coordinator themselves:
it is added to their transaction here. For others it is looked up (transaction.partition.verification.enable).

A partition in which the transaction is open already needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from tailrace.broker.broker import Broker
from tailrace.broker.coordinator_topics import TRANSACTION_STATE
from tailrace.broker.request_context import Request
from tailrace.coordinator.transactions.transaction import BUMPS_EPOCH_FROM
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import ProduceRequest
from tailrace.records.batch import HEADER_SIZE, TRANSACTIONAL_BIT, Buffer, RecordBatch
from tailrace.records.produce_request import check_produce_request

_TOPIC_IDS_FROM = 13
_ADDS_FROM = 12
_ABORTABLE_FROM = 11
_FIRST_WITH_TRANSACTIONS = 3
_MAGIC_POSITION = 16
_ATTRIBUTES_LOW_POSITION = 22

_NOT_NOW = frozenset(
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
    """Whether records begin with a transactional batch."""
    return (
        records is not None
        and len(records) >= HEADER_SIZE
        and records[_MAGIC_POSITION] == 2
        and bool(records[_ATTRIBUTES_LOW_POSITION] & TRANSACTIONAL_BIT)
    )


def has_transactional_records(request: Request) -> bool:
    body: ProduceRequest = request.body
    return request.version >= _FIRST_WITH_TRANSACTIONS and any(
        is_transactional(one.records) for topic in body.topic_data for one in topic.partition_data
    )


def verify_produce(
    broker: Broker, request: Request, go_on: Callable[[Refusals, int], None], now_ms: int
) -> ErrorCode | None:
    """Have what a request is about to write known to its coordinator; `go_on(refusals, now_ms)` is called, now or
    later. If the request is refused as a whole, why: then it is not called."""
    batches = dict(_transactional_batches(broker, request))
    producers = {ProducerIdAndEpoch(one.producer_id, one.producer_epoch) for one in batches.values()}
    if len(producers) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    version = request.version
    is_added = version >= _ADDS_FROM
    image = broker.image
    if not batches or not (is_added or broker.config.current("transaction.partition.verification.enable", image)):
        go_on({}, now_ms)
        return None
    refusals: Refusals = {}
    unverified = []
    for key, batch in batches.items():
        try:
            partition = broker.partitions.find(key)
            partition.fence(-1, leader_only=True)
            if partition.log.producers.needs_verification(batch, bumps_epoch=is_added, now_ms=now_ms):
                unverified.append(key)
        except KafkaError as error:
            refusals[key] = Refusal(error.code)
    if not unverified:
        go_on(refusals, now_ms)
        return None

    def known(error: ErrorCode, now_ms: int) -> None:
        if error is not ErrorCode.NONE:
            refusals.update(dict.fromkeys(unverified, _told(error, version)))
        go_on(refusals, now_ms)

    (producer,) = producers
    coordinator = broker.transactions.coordinator
    transactional_id = request.body.transactional_id
    if TRANSACTION_STATE not in image.topics:
        known(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
    elif is_added:
        coordinator.add_partitions(transactional_id, producer, unverified, BUMPS_EPOCH_FROM, known, now_ms)
    else:
        verified = coordinator.verify_partitions(transactional_id, producer, unverified)
        refusals.update({key: _told(error, version) for key, error in verified.items() if error is not ErrorCode.NONE})
        go_on(refusals, now_ms)
    return None


def _transactional_batches(broker: Broker, request: Request) -> Iterator[tuple[TopicPartition, RecordBatch]]:
    """Of topics that there are, and records that are sound; everything else is refused when it is its turn."""
    body: ProduceRequest = request.body
    for topic in body.topic_data:
        name = topic.name
        if request.version >= _TOPIC_IDS_FROM:
            found = broker.image.topics_by_id.get(topic.topic_id)
            name = found.name if found else ""
        if name not in broker.image.topics:
            continue
        for one in topic.partition_data:
            if one.records is None or not is_transactional(one.records):
                continue
            try:
                check_produce_request(one.records, request.version)
            except KafkaError:
                continue
            yield TopicPartition(name, one.index), RecordBatch(one.records)


def _told(error: ErrorCode, version: int) -> Refusal:
    """As Kafka tells a producer what the coordinator said, in words that its version knows."""
    if error is ErrorCode.PRODUCER_FENCED:
        return Refusal(ErrorCode.INVALID_PRODUCER_EPOCH)
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_FROM:
        error = ErrorCode.INVALID_TXN_STATE
    if error is ErrorCode.INVALID_TXN_STATE:
        return Refusal(error, "Partition was not added to the transaction")
    if error in _NOT_NOW or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDS_FROM):
        return Refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}",
        )
    return Refusal(error)
