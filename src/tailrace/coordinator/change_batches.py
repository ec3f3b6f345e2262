"""The batches that a StateChange becomes in the log: one, or, where it need not be atomic, as many as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.coordinator.shard import CoordinatorRecord, EncodedRecord, PackedRecords, StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_ID, TopicPartition
from tailrace.protocol.coordinator_records import encode_key, encode_value
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder

_RECORD_OVERHEAD = 32  # lengths and deltas of a record: at most this much besides its key and value


def build_batches(
    change: StateChange[Any], key: TopicPartition, max_bytes: int, codec: Codec, now_ms: int
) -> Iterator[tuple[bytes, list[CoordinatorRecord]]]:
    """Each batch, as Kafka's coordinators write it, with its records to replay; MESSAGE_TOO_LARGE where none fits."""
    builder = _builder(change, codec)
    if isinstance(change.records, PackedRecords):
        packed = change.records
        builder.append_encoded(packed.payload, packed.count, now_ms, now_ms, packed.count - 1)
        if builder.uncompressed_size > max_bytes:
            raise _too_many(change, key)
        yield builder.build(), []
        return
    records: list[CoordinatorRecord] = []
    for record in change.records:
        if isinstance(record, EncodedRecord):
            encoded_key, encoded_value = record
        elif record.encoded is not None:
            encoded_key, encoded_value = record.encoded
        else:
            encoded_key = encode_key(record.key)
            encoded_value = None if record.value is None else encode_value(record.value, record.version)
        size = len(encoded_key) + len(encoded_value or b"") + _RECORD_OVERHEAD
        if builder.record_count and builder.uncompressed_size + size > max_bytes and not change.is_atomic:
            yield builder.build(), records
            builder, records = _builder(change, codec), []
        if builder.uncompressed_size + size > max_bytes:
            raise _too_many(change, key)
        builder.append(now_ms, encoded_key, encoded_value)
        if isinstance(record, CoordinatorRecord):
            records.append(record)
    yield builder.build(), records


def _too_many(change: StateChange[Any], key: TopicPartition) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{key}: {len(change.records)} records are too many for one")


def _builder(change: StateChange[Any], codec: Codec) -> BatchBuilder:
    return BatchBuilder(
        codec=codec,
        producer_id=change.producer_id,
        producer_epoch=change.producer_epoch,
        base_sequence=0,  # as Kafka's coordinators have it, with a producer or without
        transactional=change.producer_id != NO_PRODUCER_ID,
    )
