"""Transactions that one process begins and any process may end.

    transactions = Transactions(coordinators)
    begun = transactions.begin("orders-7", timeout_ms=60_000)
    …a SequencedProducer writes in the transaction…
    transactions.commit_offset(begun, "group", partition, 42, "any text")
    transactions.end(begun, commit=True)

A `Transaction` is a transactional id, a producer id and an epoch. It can be sent to other processes, and any of them
may end it; repeating the same end is safe. `begin` fences the previous holder of the transactional id and aborts its
open transaction. Ending a transaction that was fenced, or aborted after its timeout, raises TransactionLost.

There are two protocols. With transaction.version 2 (Kafka 4), a Produce adds its partition to the transaction, and each
end returns a new epoch. With older versions, partitions and groups are added by requests of their own.
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

LAST_ADD_FOR_CLIENTS: Final = 3  # later versions are for brokers
LAST_OLD_END: Final = 4  # version 5 returns a new epoch
LAST_OLD_OFFSETS: Final = 4  # version 5 adds the group to the transaction
_LOST: Final = frozenset({
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
})  # fmt: skip


class Transaction(NamedTuple):
    """The identity of a transaction: enough to write in it and to end it."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int


class TransactionLost(ClientError):
    """The transaction was fenced by a newer one, or aborted after its timeout."""

    def __init__(self, transaction: Transaction, code: int) -> None:
        super().__init__(
            f"transaction {transaction.transactional_id} (producer {transaction.producer_id}, "
            f"epoch {transaction.epoch}) was fenced, or aborted after its timeout: {code_text(code)}"
        )
        self.transaction = transaction
        self.code = code


class Transactions:
    def __init__(self, coordinators: Coordinators) -> None:
        self.coordinators = coordinators

    @property
    def has_version_2(self) -> bool:
        return self.coordinators.has_transaction_version_2

    def begin(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """Begin a transaction. The previous holder of the transactional id is fenced, its open transaction aborted."""

        def check(answer: InitProducerIdResponse) -> None:
            if answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                message = f"a timeout of {timeout_ms} ms is more than the broker's transaction.max.timeout.ms"
                raise Refused(f"transactional id {transactional_id}", answer.error_code, message)
            if answer.error_code:
                raise Refused(f"transactional id {transactional_id}", answer.error_code)

        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        answer: InitProducerIdResponse = self._ask(transactional_id, request, check)
        return Transaction(transactional_id, answer.producer_id, answer.producer_epoch)

    def add_partitions(self, transaction: Transaction, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction, as the older protocol requires. Do nothing with the newer protocol."""
        if self.has_version_2:
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
        self._ask(transaction.transactional_id, request, check, version_max=LAST_ADD_FOR_CLIENTS)

    def commit_offset(
        self, transaction: Transaction, group: str, partition: TopicPartition, offset: int, metadata: str
    ) -> None:
        """Commit a group's offset with metadata as part of the transaction."""
        if not self.has_version_2:
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
        version_max = None if self.has_version_2 else LAST_OLD_OFFSETS
        self.coordinators.ask(CoordinatorKind.GROUP, group, request, check, version_min=3, version_max=version_max)

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
        """Commit or abort. Repeating the same end is safe. Raise TransactionLost if the transaction was aborted."""

        def check(answer: EndTxnResponse) -> None:
            _check(transaction, f"transaction {transaction.transactional_id}", answer.error_code)

        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=commit,
        )
        self._ask(
            transaction.transactional_id, request, check, version_max=None if self.has_version_2 else LAST_OLD_END
        )

    def ongoing(self, names: re.Pattern[str]) -> list[str]:
        """Return the transactional ids with open transactions that match `names` completely, of all brokers.

        A cluster older than Kafka 3.0 cannot list them; the result is then empty.
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

    def _ask(self, transactional_id: str, request: Any, check: Any, *, version_max: int | None = None) -> Any:
        return self.coordinators.ask(
            CoordinatorKind.TRANSACTION, transactional_id, request, check, version_max=version_max
        )


def _check(transaction: Transaction, subject: str, code: int) -> None:
    if code in _LOST:
        raise TransactionLost(transaction, code)
    if code:
        raise Refused(subject, code)
