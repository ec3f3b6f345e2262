"""Records of `__transaction_state`: one key per transactional id, whose last value says everything.

    key     TransactionLogKey: transactional id
    value   TransactionLogValue, version 1 from transaction.version 1 on; null once the id is forgotten

The epoch before the last (`last_producer_epoch`) is not in it: a retry that spans a restart is fenced, as in Kafka.
"""

from __future__ import annotations

from collections import defaultdict

from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.coordinator.transactions.transaction import Facts, TransactionState
from tailrace.model.ids import NO_PRODUCER_EPOCH, TopicPartition
from tailrace.protocol.messages import TransactionLogKey, TransactionLogValue


def transaction_record(transactional_id: str, facts: Facts, server_version: int) -> CoordinatorRecord:
    """What is written when a transaction becomes this, under the cluster's transaction.version."""
    value = TransactionLogValue(
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_status=facts.state,
        transaction_partitions=None if facts.state is TransactionState.EMPTY else _by_topic(facts.partitions),
        transaction_last_update_timestamp_ms=facts.last_update_ms,
        transaction_start_timestamp_ms=facts.start_ms,
    )
    version = 1 if server_version >= 1 else 0
    if version:
        value.previous_producer_id = facts.previous_producer_id
        value.next_producer_id = facts.next_producer_id
        value.client_transaction_version = facts.client_version
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), value, version)


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def facts_of(value: TransactionLogValue) -> Facts:
    """What a record says. ValueError for a state that there is not."""
    state = TransactionState(value.transaction_status)
    partitions: frozenset[TopicPartition] = frozenset()
    if state is not TransactionState.EMPTY and value.transaction_partitions:
        partitions = frozenset(
            TopicPartition(one.topic, index) for one in value.transaction_partitions for index in one.partition_ids
        )
    return Facts(
        state=state,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=value.transaction_timeout_ms,
        partitions=partitions,
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _by_topic(partitions: frozenset[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(partitions):
        by_topic[topic].append(index)
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()
    ]
