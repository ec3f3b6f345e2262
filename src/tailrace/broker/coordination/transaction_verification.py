"""TransactionVerification: checks at the coordinator before the first batch of a transaction in a partition.

Without this check, a late batch of an ended transaction would open a new transaction that nothing ever ends. It would
block all read_committed consumers of the partition. There are three cases:

1. The transaction is already open in the partition: no check is needed.
2. The client uses Produce 12 or TxnOffsetCommit 5, or later: the broker adds the partition to the transaction.
3. The client is older: the broker asks the coordinator if the partition is part of the transaction. This check is off
   if transaction.partition.verification.enable is false.
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
        """`peers` sends requests to coordinators on other brokers. It is None in a cluster of one node."""
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
        """Call `known(errors, now_ms)` once, now or later, with the partitions that must not be written.

        With `is_added`, add the partitions to the transaction. Otherwise they must already be part of it.
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
        """Return the partitions in which the transaction is not open yet. Partitions led elsewhere go to `errors`."""
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
        """Return the coordinator of a transaction and the peers to reach it, or None if this broker coordinates it."""
        if self._peers is None or not transactional_id:
            return None
        log_partition = self._coordinator.log_partition(transactional_id)
        state = self._controller.image.partition(TopicPartition(TRANSACTION_STATE, log_partition))
        if state is None or state.leader in (self._controller.node_id, -1):
            return None
        return self._peers, state.leader


def _as_sent(error: ErrorCode, *, is_abortable: bool) -> ErrorCode:
    """Return the error for the client that stands for the coordinator's error."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not is_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
