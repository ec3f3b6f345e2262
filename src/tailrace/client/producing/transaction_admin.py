"""Transactions for administrators: list, describe, find hanging ones, and abort.

A transaction hangs if it is open in a partition but its coordinator does not have the partition in the transaction. The
coordinator will never end it, and consumers with read_committed cannot read past it. `find_hanging` finds hanging
transactions. `abort_transaction` writes an abort marker to one partition, without the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import Refused, only
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, Offset, ProducerId, TopicPartition
from tailrace.protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class ListedTransaction(NamedTuple):
    transactional_id: str
    coordinator: BrokerId
    producer_id: ProducerId
    state: str


class TransactionDescription(NamedTuple):
    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int  # -1: no open transaction
    partitions: tuple[TopicPartition, ...]


class ActiveProducer(NamedTuple):
    """The state of a producer in a partition."""

    partition: TopicPartition
    producer_id: ProducerId
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    start_offset: Offset  # of its open transaction; -1: none


def list_transactions(
    cluster: ClusterClient,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[ProducerId] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """Return the transactions of all coordinators. longer_than_ms needs Kafka 3.8, pattern Kafka 4.1."""
    request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids))
    version_min = 0
    if longer_than_ms >= 0:
        request.duration_filter = longer_than_ms
        version_min = 1
    if pattern is not None:
        request.transactional_id_pattern = pattern
        version_min = 2

    def check(answer: ListTransactionsResponse) -> None:
        if answer.error_code:
            raise Refused("the list of transactions", answer.error_code)
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise Refused("the list of transactions", ErrorCode.INVALID_REQUEST, f"unknown state: {unknown}")

    found = []
    for node_id in sorted(cluster.metadata.brokers):
        answer: ListTransactionsResponse = cluster.ask_node(node_id, request, version_min=version_min, check=check)
        found += [
            ListedTransaction(one.transactional_id, node_id, one.producer_id, one.transaction_state)
            for one in answer.transaction_states
        ]
    return sorted(found)


def describe_transaction(coordinators: Coordinators, transactional_id: str) -> TransactionDescription:
    def check(answer: DescribeTransactionsResponse) -> None:
        for one in answer.transaction_states:
            if one.error_code:
                raise Refused(f"transactional id {transactional_id}", one.error_code)

    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer: DescribeTransactionsResponse = coordinators.ask(
        CoordinatorKind.TRANSACTION, transactional_id, request, check
    )
    one = only(answer.transaction_states, f"transactional id {transactional_id}")
    return TransactionDescription(
        one.transactional_id,
        one.producer_id,
        one.producer_epoch,
        one.transaction_state,
        one.transaction_timeout_ms,
        one.transaction_start_time_ms,
        tuple(sorted(TopicPartition(topic.topic, index) for topic in one.topics for index in topic.partitions)),
    )


def describe_producers(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ActiveProducer]]:
    def build(leaders: list[LedPartition]) -> DescribeProducersRequest:
        topics: dict[str, DescribeProducersRequest.TopicRequest] = {}
        for leader in leaders:
            name, index = leader.partition
            topics.setdefault(name, DescribeProducersRequest.TopicRequest(name=name)).partition_indexes.append(index)
        return DescribeProducersRequest(topics=list(topics.values()))

    def read(answer: DescribeProducersResponse, _: list[LedPartition]) -> Iterator[PartitionAnswer]:
        for topic in answer.topics:
            for data in topic.partitions:
                key = TopicPartition(topic.name, data.partition_index)
                error = Refused(str(key), data.error_code, data.error_message) if data.error_code else None
                yield PartitionAnswer(key, [_producer(key, one) for one in data.active_producers], error)

    found: dict[TopicPartition, list[ActiveProducer]] = cluster.ask_leaders(partitions, build, read)
    return found


def _producer(key: TopicPartition, one: Any) -> ActiveProducer:
    return ActiveProducer(
        key,
        one.producer_id,
        one.producer_epoch,
        one.last_sequence,
        one.last_timestamp,
        one.coordinator_epoch,
        one.current_txn_start_offset,
    )


def find_hanging(
    coordinators: Coordinators, partitions: Iterable[TopicPartition], *, longest_ms: int, now_ms: int
) -> list[ActiveProducer]:
    """Return the hanging transactions. A transaction with a write in the last `longest_ms` is not hanging."""
    cluster = coordinators.cluster
    open_ones = [
        one
        for producers in describe_producers(cluster, partitions).values()
        for one in producers
        if one.start_offset >= 0 and now_ms - one.last_timestamp_ms > longest_ms
    ]
    if not open_ones:
        return []
    known = list_transactions(cluster, producer_ids=sorted({one.producer_id for one in open_ones}))
    expected: dict[ProducerId, frozenset[TopicPartition]] = {}
    for listed in known:
        try:
            described = describe_transaction(coordinators, listed.transactional_id)
        except Refused as error:
            if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                continue  # it has expired since the list was made
            raise
        expected[described.producer_id] = frozenset(described.partitions)
    return [one for one in open_ones if one.partition not in expected.get(one.producer_id, frozenset())]


def abort_transaction(cluster: ClusterClient, producer: ActiveProducer) -> None:
    """Abort a producer's transaction in one partition.

    Use it only for a hanging transaction: neither the coordinator nor the other partitions are notified.
    """
    key = producer.partition
    leader = cluster.topic(key.topic, fresh=True).partition(key.partition).leader
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=key.topic, partition_indexes=[key.partition])],
    )

    def check(answer: WriteTxnMarkersResponse) -> None:
        for one in answer.markers:
            for topic in one.topics:
                for data in topic.partitions:
                    if data.error_code:
                        raise Refused(f"producer {producer.producer_id} in {key}", data.error_code)

    cluster.change(WriteTxnMarkersRequest(markers=[marker]), check, node_id=leader)
