"""TransactionVerification: before a transaction is opened in a partition, its coordinator has to know of it.

A batch that is late, of a transaction that has ended, would otherwise open one that nobody ends, and hold back
everybody who reads committed records. Clients of newer requests (Produce 12, TxnOffsetCommit 5) do not tell the
coordinator themselves: the partition is added to their transaction here. For others it is looked up there, unless
transaction.partition.verification.enable is off. A partition in which the transaction is open already needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinator_topics import TRANSACTION_STATE
from tailrace.broker.coordination.transactions import Transactions
from tailrace.coordinator.transactions.transaction import BUMPS_EPOCH_FROM
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions


class TransactionVerification:
    def __init__(
        self,
        config: BrokerConfig,
        controller: Controller,
        partitions: HostedPartitions,
        transactions: Transactions,
        peers: TransactionPeers | None,
    ) -> None:
        """`peers`: how to ask coordinators on other brokers; None if the broker is alone."""
        self._config = config
        self._controller = controller
        self._partitions = partitions
        self._coordinator = transactions.coordinator
        self._peers = peers

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        first_sequences: Mapping[TopicPartition, int],
        known: Callable[[dict[TopicPartition, ErrorCode], int], None],
        now_ms: int,
        *,
        is_added: bool,
        is_abortable: bool,
    ) -> None:
        """Call `known(errors, now_ms)` once, now or later, with the partitions that may not be written to.

        `is_added` adds the partitions to the transaction; otherwise they must be part of it already.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        image = self._controller.image
        if not (is_added or self._config.current("transaction.partition.verification.enable", image)):
            known(errors, now_ms)
            return
        unverified = self._unverified(producer, first_sequences, errors, now_ms, is_added=is_added)
        if not unverified:
            known(errors, now_ms)
            return

        def added(error: ErrorCode, now_ms: int) -> None:
            found(dict.fromkeys(unverified, error), now_ms)

        def found(results: Mapping[TopicPartition, ErrorCode], now_ms: int) -> None:
            for key, error in results.items():
                if error is not ErrorCode.NONE:
                    errors[key] = _as_sent(error, is_abortable=is_abortable)
            known(errors, now_ms)

        def answered(results: dict[TopicPartition, ErrorCode], now_ms: int) -> None:
            missing = dict.fromkeys(unverified, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            found({**missing, **results}, now_ms)

        if TRANSACTION_STATE not in image.topics:
            added(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
        elif (elsewhere := self._elsewhere(transactional_id)) is not None:
            peers, leader = elsewhere
            peers.ask_coordinator(leader, transactional_id, producer, unverified, answered, now_ms, is_added=is_added)
        elif is_added:
            self._coordinator.add_partitions(transactional_id, producer, unverified, BUMPS_EPOCH_FROM, added, now_ms)
        else:
            found(self._coordinator.verify_partitions(transactional_id, producer, unverified), now_ms)

    def _unverified(
        self,
        producer: ProducerIdAndEpoch,
        first_sequences: Mapping[TopicPartition, int],
        errors: dict[TopicPartition, ErrorCode],
        now_ms: int,
        *,
        is_added: bool,
    ) -> list[TopicPartition]:
        """Return the partitions in which the transaction is not open yet; `errors` gets those that are not led here."""
        unverified = []
        for key, sequence in first_sequences.items():
            try:
                partition = self._partitions.find(key)
                partition.fence(-1, leader_only=True)
                if partition.log.producers.needs_verification(*producer, sequence, bumps_epoch=is_added, now_ms=now_ms):
                    unverified.append(key)
            except KafkaError as error:
                errors[key] = error.code
        return unverified

    def _elsewhere(self, transactional_id: str) -> tuple[TransactionPeers, BrokerId] | None:
        """Return the broker that coordinates a transaction, if that is another one, and how to ask it."""
        if self._peers is None or not transactional_id:
            return None
        log_partition = self._coordinator.log_partition(transactional_id)
        state = self._controller.image.partition(TopicPartition(TRANSACTION_STATE, log_partition))
        if state is None or state.leader in (self._controller.node_id, -1):
            return None
        return self._peers, state.leader


def _as_sent(error: ErrorCode, *, is_abortable: bool) -> ErrorCode:
    """Return the error that a client is sent for the coordinator's."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not is_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
