"""Before a transaction is opened in a partition, its coordinator has to know of it.

A batch that is late, of a transaction that has ended, would otherwise open one that nobody ends, and hold back
everybody who reads committed records. Clients of newer requests (Produce 12, TxnOffsetCommit 5) do not tell the
coordinator themselves: the partition is added to their transaction here. For others it is looked up there, unless
transaction.partition.verification.enable is off. A partition in which the transaction is open already needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tailrace.broker.broker import Broker
from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.broker.coordination.coordinator_topics import TRANSACTION_STATE
from tailrace.coordinator.transactions.transaction import BUMPS_EPOCH_FROM
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, TopicPartition


def verify_partitions(
    broker: Broker,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    first_sequences: Mapping[TopicPartition, int],
    known: Callable[[dict[TopicPartition, ErrorCode], int], None],
    now_ms: int,
    *,
    is_added: bool,
    is_abortable: bool,
) -> None:
    """`known(errors, now_ms)` is called once, now or later, with the partitions that may not be written to."""
    errors: dict[TopicPartition, ErrorCode] = {}
    image = broker.image
    if not (is_added or broker.config.current("transaction.partition.verification.enable", image)):
        known(errors, now_ms)
        return
    unverified = []
    for key, sequence in first_sequences.items():
        try:
            partition = broker.partitions.find(key)
            partition.fence(-1, leader_only=True)
            if partition.log.producers.needs_verification(*producer, sequence, bumps_epoch=is_added, now_ms=now_ms):
                unverified.append(key)
        except KafkaError as error:
            errors[key] = error.code
    if not unverified:
        known(errors, now_ms)
        return

    def told(error: ErrorCode) -> ErrorCode:
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and not is_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return error

    def added(error: ErrorCode, now_ms: int) -> None:
        if error is not ErrorCode.NONE:
            errors.update(dict.fromkeys(unverified, told(error)))
        known(errors, now_ms)

    coordinator = broker.transactions.coordinator
    if TRANSACTION_STATE not in image.topics:
        added(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
    elif (elsewhere := _elsewhere(broker, transactional_id)) is not None:

        def heard(found: dict[TopicPartition, ErrorCode], now_ms: int) -> None:
            missing = dict.fromkeys(unverified, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            heard_of = {**missing, **found}
            errors.update({key: told(error) for key, error in heard_of.items() if error is not ErrorCode.NONE})
            known(errors, now_ms)

        peers, leader = elsewhere
        peers.ask_coordinator(leader, transactional_id, producer, unverified, heard, now_ms, is_added=is_added)
    elif is_added:
        coordinator.add_partitions(transactional_id, producer, unverified, BUMPS_EPOCH_FROM, added, now_ms)
    else:
        verified = coordinator.verify_partitions(transactional_id, producer, unverified)
        errors.update({key: told(error) for key, error in verified.items() if error is not ErrorCode.NONE})
        known(errors, now_ms)


def _elsewhere(broker: Broker, transactional_id: str) -> tuple[TransactionPeers, BrokerId] | None:
    """The broker that coordinates a transaction, if that is another one, and how to ask it."""
    peers = broker.transaction_peers
    if peers is None or not transactional_id:
        return None
    log_partition = broker.transactions.coordinator.log_partition(transactional_id)
    state = broker.image.partition(TopicPartition(TRANSACTION_STATE, log_partition))
    return None if state is None or state.leader in (broker.node_id, -1) else (peers, state.leader)
