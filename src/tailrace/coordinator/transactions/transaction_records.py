"""Records of `__transaction_state`: one key per transactional id, whose latest value has the complete state.

    key     TransactionLogKey: transactional id
    value   TransactionLogValue, version 1 from transaction.version 1 on; null when the id has expired

The previous epoch (`last_producer_epoch`) is not in it. So a retry after a restart is fenced, as in Kafka.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error

from tailrace.coordinator.shard import CoordinatorRecord, EncodedRecord
from tailrace.coordinator.transactions.transaction import Facts, TransactionState
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.internal_records.coordinator_records import encode_value
from tailrace.protocol.messages import TransactionLogKey, TransactionLogValue
from tailrace.protocol.primitives import uvarint
from tailrace.protocol.strings import compact_string, plain_string

_HEAD = Struct(">hqhib").pack
_TIMES = Struct(">qq").pack
_INT16 = Struct(">h").pack
_INT32 = Struct(">i").pack
_INT64 = Struct(">q").pack


def transaction_record(transactional_id: str, facts: Facts, server_version: int) -> CoordinatorRecord:
    """Return the record of a transaction in this state, under the cluster's transaction.version."""
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


def encoded_record(transactional_id: str, facts: Facts, server_version: int) -> EncodedRecord:
    """Encode the record of `transaction_record` directly. Every step of every transaction writes one, so this is a
    fast path.

    Raise UnwritableMessage for an id, a topic or a number that the record's format cannot hold.
    """
    key = b"\0\0" + plain_string(transactional_id)
    if server_version < 1:
        record = transaction_record(transactional_id, facts, server_version)
        assert record.value is not None
        return EncodedRecord(key, encode_value(record.value, record.version))
    try:
        return EncodedRecord(key, _encoded_value(facts))
    except struct_error as error:
        raise UnwritableMessage(f"the transaction of {transactional_id[:100]} has a number out of range") from error


def _encoded_value(facts: Facts) -> bytes:
    """Encode the value in version 1."""
    parts = [_HEAD(1, facts.producer_id, facts.producer_epoch, facts.timeout_ms, facts.state)]
    if facts.state is TransactionState.EMPTY:
        parts.append(b"\0")
    else:
        by_topic = _partitions_by_topic(facts.partitions)
        parts.append(uvarint(len(by_topic) + 1))
        for topic, indexes in by_topic.items():
            parts += (compact_string(topic), uvarint(len(indexes) + 1))
            parts += [_INT32(index) for index in indexes]
            parts.append(b"\0")
    parts.append(_TIMES(facts.last_update_ms, facts.start_ms))
    tags = []
    if facts.previous_producer_id != NO_PRODUCER_ID:
        tags.append(b"\0\x08" + _INT64(facts.previous_producer_id))
    if facts.next_producer_id != NO_PRODUCER_ID:
        tags.append(b"\1\x08" + _INT64(facts.next_producer_id))
    if facts.client_version:
        tags.append(b"\2\2" + _INT16(facts.client_version))
    return b"".join((*parts, uvarint(len(tags)), *tags))


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def facts_of(value: TransactionLogValue) -> Facts:
    """Return the facts in a record. Raise ValueError for an unknown state."""
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
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes)
        for topic, indexes in _partitions_by_topic(partitions).items()
    ]


def _partitions_by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return by_topic
