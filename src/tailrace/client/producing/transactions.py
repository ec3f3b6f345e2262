"""Transactions: begun here, or by another process, and ended by whoever holds what `begin` gave.

    transactions = Transactions(coordinators)
    begun = transactions.begin("orders-7", timeout_ms=60_000)
    …a SequencedProducer writes under begun…
    transactions.commit_offset(begun, "group", partition, 42, "any words")
    transactions.end(begun, commit=True)

A `Transaction` is a name, a producer id and an epoch: it travels, and its end may be asked for again and again by
anybody who has it. `begin` fences whoever held the name before: an open transaction under it is aborted. What was lost
that way, or aborted by the coordinator because it took too long, is TransactionLost when it is to be ended.

Clusters know two protocols. With transaction.version 2 (Kafka 4) producing adds a partition to its transaction, and
each end gives a new epoch; before, partitions and groups are added first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import ClientError, Refused, UnsupportedByBroker, code_text
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import ProducerId, TopicPartition
from tailrace.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

LAST_ADD_FOR_CLIENTS: Final = 3  # later versions are spoken between brokers
LAST_OLD_END: Final = 4  # the next one gives a new epoch
LAST_OLD_OFFSETS: Final = 4  # the next one adds the group by itself
_LOST: Final = frozenset({
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
})  # fmt: skip


class Transaction(NamedTuple):
    """What it takes to write in a transaction, or to end it."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int


class TransactionLost(ClientError):
    """The transaction was ended by others: fenced by a newer one, or aborted because it took too long."""

    def __init__(self, transaction: Transaction, code: int) -> None:
        super().__init__(
            f"transaction {transaction.transactional_id} (producer {transaction.producer_id}, "
            f"epoch {transaction.epoch}) was ended by others: {code_text(code)}"
        )
        self.transaction = transaction
        self.code = code


class Transactions:
    def __init__(self, coordinators: Coordinators) -> None:
        self.coordinators = coordinators

    @property
    def is_newer(self) -> bool:
        return self.coordinators.has_newer_transactions

    def begin(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """Take the name over: whoever held it is fenced, and what it left open aborted, before this returns."""

        def check(answer: InitProducerIdResponse) -> None:
            if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                words = f"a timeout of {timeout_ms} ms is more than the broker's transaction.max.timeout.ms"
                raise Refused(f"transactional id {transactional_id}", answer.error_code, words)
            if answer.error_code:
                raise Refused(f"transactional id {transactional_id}", answer.error_code)

        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        answer: InitProducerIdResponse = self._ask(transactional_id, request, check)
        return Transaction(transactional_id, answer.producer_id, answer.producer_epoch)

    def add_partitions(self, transaction: Transaction, partitions: Iterable[TopicPartition]) -> None:
        """What the older protocol wants before the first batch to each partition; with the newer one nothing."""
        if self.is_newer:
            return
        topics: dict[str, AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = {}
        for topic, partition in partitions:
            found = topics.setdefault(topic, AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic))
            found.partitions.append(partition)

        def check(answer: AddPartitionsToTxnResponse) -> None:
            for topic in answer.results_by_topic_v3_and_below:
                for one in topic.results_by_partition:
                    if one.partition_error_code != ErrorCode.OPERATION_NOT_ATTEMPTED:
                        _check(transaction, f"{topic.name}-{one.partition_index}", one.partition_error_code)

        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transaction.transactional_id,
            v3_and_below_producer_id=transaction.producer_id,
            v3_and_below_producer_epoch=transaction.epoch,
            v3_and_below_topics=list(topics.values()),
        )
        self._ask(transaction.transactional_id, request, check, at_most=LAST_ADD_FOR_CLIENTS)

    def commit_offset(
        self, transaction: Transaction, group: str, partition: TopicPartition, offset: int, metadata: str
    ) -> None:
        """A group's offset, with a note: it is there as soon as the transaction is committed, and only then."""
        if not self.is_newer:
            self._add_group(transaction, group)

        def check(answer: TxnOffsetCommitResponse) -> None:
            for topic in answer.topics:
                for one in topic.partitions:
                    _check(transaction, f"group {group}", one.error_code)

        offsets = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=partition.partition, committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id=transaction.transactional_id,
            group_id=group,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=partition.topic, partitions=[offsets])],
        )
        at_most = None if self.is_newer else LAST_OLD_OFFSETS
        self.coordinators.ask(CoordinatorKind.GROUP, group, request, check, at_least=3, at_most=at_most)

    def _add_group(self, transaction: Transaction, group: str) -> None:
        def check(answer: AddOffsetsToTxnResponse) -> None:
            _check(transaction, f"group {group}", answer.error_code)

        request = AddOffsetsToTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            group_id=group,
        )
        self._ask(transaction.transactional_id, request, check)

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort; the same end may be asked for again, by anybody. TransactionLost where it is too late."""

        def check(answer: EndTxnResponse) -> None:
            _check(transaction, f"transaction {transaction.transactional_id}", answer.error_code)

        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=commit,
        )
        self._ask(transaction.transactional_id, request, check, at_most=None if self.is_newer else LAST_OLD_END)

    def ongoing(self, names: re.Pattern[str]) -> list[str]:
        """The transactional ids, of those that match as a whole, whose transactions are open, on all brokers.

        Nothing where the cluster is older than Kafka 3.0 and cannot tell.
        """

        def check(answer: ListTransactionsResponse) -> None:
            if answer.error_code:
                raise Refused("the list of transactions", answer.error_code)

        found = []
        cluster = self.coordinators.cluster
        for node_id in list(cluster.metadata.brokers):
            try:
                answer = cluster.ask_node(node_id, ListTransactionsRequest(state_filters=["Ongoing"]), check=check)
            except UnsupportedByBroker:
                return []
            found += [one.transactional_id for one in answer.transaction_states]
        return [name for name in found if names.fullmatch(name)]

    def _ask(self, transactional_id: str, request: Any, check: Any, *, at_most: int | None = None) -> Any:
        return self.coordinators.ask(CoordinatorKind.TRANSACTION, transactional_id, request, check, at_most=at_most)


def _check(transaction: Transaction, subject: str, code: int) -> None:
    if code in _LOST:
        raise TransactionLost(transaction, code)
    if code:
        raise Refused(subject, code)
