"""The batches of a StateChange: one, or as many as needed if the change is not atomic.

If a record cannot be encoded, or fits in no batch, an atomic change is refused. A change that is not atomic is written
without that record: tombstones of many groups must not wait for one group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tailrace.coordinator.shard import CoordinatorRecord, EncodedRecord, PackedRecords, StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_ID, TopicPartition
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.records.batch import HEADER_SIZE, Codec
from tailrace.records.builder import BatchBuilder, assemble_batch, batch_attributes
from tailrace.records.codecs.compression import compress

_RECORD_OVERHEAD = 32  # lengths and deltas of a record: at most this much besides its key and value


def build_batches(
    change: StateChange[Any],
    key: TopicPartition,
    max_bytes: int,
    codec: Codec,
    now_ms: int,
    left_out: Callable[[Exception], None],
) -> Iterator[tuple[bytes, list[CoordinatorRecord]]]:
    """Yield each batch, as Kafka's coordinators write it, with its records to replay.

    Raise MESSAGE_TOO_LARGE or UnwritableMessage if an atomic change does not fit. For other changes `left_out` is
        called for each record that does not fit.
    """
    assert not isinstance(change.records, PackedRecords)
    builder = _builder(change, codec)
    empty_size = builder.uncompressed_size
    records: list[CoordinatorRecord] = []
    for record in change.records:
        try:
            encoded_key, encoded_value = _encoded(record)
            size = len(encoded_key) + len(encoded_value or b"") + _RECORD_OVERHEAD
            if (empty_size if not change.is_atomic else builder.uncompressed_size) + size > max_bytes:
                raise _too_many(change, key)
        except (UnwritableMessage, KafkaError) as error:
            if change.is_atomic:
                raise
            left_out(error)
            continue
        if builder.uncompressed_size + size > max_bytes:
            yield builder.build(), records
            builder, records = _builder(change, codec), []
        builder.append(now_ms, encoded_key, encoded_value)
        if isinstance(record, CoordinatorRecord):
            records.append(record)
    if builder.record_count:
        yield builder.build(), records


def build_packed(
    change: StateChange[Any], packed: PackedRecords, key: TopicPartition, max_bytes: int, codec: Codec, now_ms: int
) -> tuple[bytes, bytes]:
    """Return the one batch of packed records, and its payload before compression. Raise MESSAGE_TOO_LARGE."""
    if HEADER_SIZE + packed.size > max_bytes:
        raise _too_many(change, key)
    payload = packed.encode()
    batch = assemble_batch(
        compress(codec, payload),
        base_offset=0,
        last_offset=len(packed) - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        attributes=batch_attributes(codec, transactional=change.producer_id != NO_PRODUCER_ID),
        producer_id=change.producer_id,
        producer_epoch=change.producer_epoch,
        base_sequence=0,  # as in Kafka's coordinators, with a producer or without
        leader_epoch=NO_LEADER_EPOCH,
        record_count=len(packed),
    )
    return batch, payload


def _encoded(record: CoordinatorRecord | EncodedRecord) -> tuple[bytes, bytes | None]:
    if isinstance(record, EncodedRecord):
        return record
    return encode_key(record.key), None if record.value is None else encode_value(record.value, record.version)


def _too_many(change: StateChange[Any], key: TopicPartition) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"{key}: {len(change.records)} records do not fit in one batch; the request must be split",
    )


def _builder(change: StateChange[Any], codec: Codec) -> BatchBuilder:
    return BatchBuilder(
        codec=codec,
        producer_id=change.producer_id,
        producer_epoch=change.producer_epoch,
        base_sequence=0,  # as in Kafka's coordinators, with a producer or without
        transactional=change.producer_id != NO_PRODUCER_ID,
    )
