"""SequencedProducer: writes batches that already contain producer id, epoch and sequence, each exactly once.

The caller takes a sequence (`take_sequence`) when it builds a batch, so that the batch need not be copied. Batches of a
partition are sent in the order of their sequences, one at a time. After a lost response the batch is sent again, and
the broker recognizes it. In a transaction, the first batch to a partition adds the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.errors import ClientError, Refused
from tailrace.client.producing.producer import (
    FIRST_VERSION_WITH_ZSTD,
    LAST_VERSION_BY_NAME,
    new_producer_id,
    produce_topics,
    produced_answers,
)
from tailrace.client.producing.transactions import Transaction, TransactionLost, Transactions
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import ProduceRequest, ProduceResponse
from tailrace.records.batch import Buffer, increment_sequence

FIRST_VERSION_THAT_ADDS: Final = 12  # a Produce adds its partitions to the transaction (transaction.version 2)
LAST_OLD_PRODUCE: Final = 11
ANSWER_MARGIN_MS: Final = 1_000
_FENCED: Final = frozenset({
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTION_ABORTABLE,
})  # fmt: skip


class SequencedProducer:
    def __init__(self, cluster: ClusterClient, transactions: Transactions, transaction: Transaction | None) -> None:
        """Create a producer. Without a transaction it is only idempotent."""
        self._cluster = cluster
        self._transactions = transactions
        self.transaction = transaction
        if transaction is None:
            self.producer_id, self.epoch = new_producer_id(cluster)
        else:
            self.producer_id, self.epoch = transaction.producer_id, transaction.epoch
        self._sequences: dict[TopicPartition, int] = {}
        self._joined: set[TopicPartition] = set()

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that were written to."""
        return sorted(self._sequences)

    def take_sequence(self, partition: TopicPartition, records: int) -> int:
        """Return the base sequence of the next batch to a partition, and advance it by `records`."""
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = increment_sequence(sequence, records)
        return sequence

    def send(
        self, batches: Mapping[TopicPartition, Buffer], *, has_zstd: bool = False
    ) -> dict[TopicPartition, ClientError]:
        """Write one batch to each of these partitions. Return the errors of those that failed."""
        version_min, version_max = FIRST_VERSION_WITH_ZSTD if has_zstd else 3, LAST_VERSION_BY_NAME
        is_newest = True
        if self.transaction is not None:
            new = [partition for partition in batches if partition not in self._joined]
            if new:
                self._transactions.add_partitions(self.transaction, new)
                self._joined.update(new)
            is_newest = self._transactions.has_version_2
        if is_newest and self.transaction is not None:
            version_min = FIRST_VERSION_THAT_ADDS

        def build(leaders: list[LedPartition]) -> ProduceRequest:
            return ProduceRequest(
                transactional_id=None if self.transaction is None else self.transaction.transactional_id,
                acks=-1,
                timeout_ms=self._cluster.settings.request_timeout_ms,
                topic_data=produce_topics(leaders, batches),
            )

        answers = self._cluster.ask_leaders(
            batches,
            build,
            self._read,
            version_min=version_min,
            version_max=None if is_newest else LAST_OLD_PRODUCE,
            version_max_without_ids=version_max,
            wait_ms=ANSWER_MARGIN_MS,
            errors_are_values=True,
        )
        return {partition: answer for partition, answer in answers.items() if isinstance(answer, ClientError)}

    def _read(self, answer: ProduceResponse, leaders: list[LedPartition]) -> Iterator[PartitionAnswer]:
        for one in produced_answers(answer, leaders):
            error = one.error
            if self.transaction is not None and isinstance(error, Refused) and error.code in _FENCED:
                yield PartitionAnswer(one.partition, None, TransactionLost(self.transaction, error.code))
            else:
                yield one
