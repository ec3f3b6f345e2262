"""Records of `__remote_log_metadata`: a new segment, a change of a segment's state, a deletion of a partition.

The key of a record is null. The value has the frame of `metadata_frames.py`, with the records of the family
`remote_log`. A partition's deletion is defined, but Kafka's brokers delete segment by segment.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tailrace.model.ids import BrokerId, TopicId, TopicPartition
from tailrace.protocol.errors import MalformedMessage
from tailrace.protocol.internal_records.metadata_frames import decode_frame, encode_frame
from tailrace.protocol.messages import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from tailrace.protocol.primitives import Buffer
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState

REMOTE_LOG_METADATA: Final = "__remote_log_metadata"
_VERSION: Final = 0
_FAMILY: Final = "remote_log"


@dataclass(frozen=True, slots=True)
class SegmentUpdate:
    """A new state of a remote segment."""

    segment_id: RemoteSegmentId
    state: RemoteSegmentState
    event_timestamp_ms: int
    broker_id: BrokerId
    custom_metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class PartitionDeletion:
    """A state of the deletion of a partition's remote log: 0 marked, 1 started, 2 finished."""

    topic_id: TopicId
    partition: TopicPartition
    state: int
    event_timestamp_ms: int
    broker_id: BrokerId


SegmentRecord: TypeAlias = RemoteSegment | SegmentUpdate | PartitionDeletion


def encode_segment(segment: RemoteSegment) -> bytes:
    record = RemoteLogSegmentMetadataRecord
    message = record(
        remote_log_segment_id=record.RemoteLogSegmentIdEntry(
            topic_id_partition=record.TopicIdPartitionEntry(
                name=segment.segment_id.topic,
                id=segment.segment_id.topic_id.value.bytes,
                partition=segment.segment_id.partition,
            ),
            id=segment.segment_id.id.bytes,
        ),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        broker_id=segment.broker_id,
        max_timestamp_ms=segment.max_timestamp_ms,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_leader_epochs=[
            record.SegmentLeaderEpochEntry(leader_epoch=epoch, offset=offset)
            for epoch, offset in sorted(segment.leader_epochs)
        ],
        segment_size_in_bytes=segment.size,
        custom_metadata=segment.custom_metadata,
        remote_log_segment_state=segment.state,
        txn_index_empty=segment.txn_index_empty,
    )
    return encode_frame(message, _VERSION)


def encode_update(update: SegmentUpdate) -> bytes:
    record = RemoteLogSegmentMetadataUpdateRecord
    message = record(
        remote_log_segment_id=record.RemoteLogSegmentIdEntry(
            topic_id_partition=record.TopicIdPartitionEntry(
                name=update.segment_id.topic,
                id=update.segment_id.topic_id.value.bytes,
                partition=update.segment_id.partition,
            ),
            id=update.segment_id.id.bytes,
        ),
        broker_id=update.broker_id,
        event_timestamp_ms=update.event_timestamp_ms,
        custom_metadata=update.custom_metadata,
        remote_log_segment_state=update.state,
    )
    return encode_frame(message, _VERSION)


def decode_record(value: Buffer) -> SegmentRecord:
    """Return the record in a value. Raise ProtocolError if Kafka could not read it either."""
    message: Any = decode_frame(value, _FAMILY).message
    if isinstance(message, RemoteLogSegmentMetadataRecord):
        return _segment_of(message)
    if isinstance(message, RemoteLogSegmentMetadataUpdateRecord):
        return SegmentUpdate(
            _segment_id_of(message.remote_log_segment_id),
            _state_of(message.remote_log_segment_state),
            message.event_timestamp_ms,
            message.broker_id,
            message.custom_metadata,
        )
    if isinstance(message, RemotePartitionDeleteMetadataRecord):
        place = message.topic_id_partition
        return PartitionDeletion(
            TopicId(uuid.UUID(bytes=bytes(place.id))),
            TopicPartition(place.name, place.partition),
            message.remote_partition_delete_state,
            message.event_timestamp_ms,
            message.broker_id,
        )
    raise MalformedMessage(_FAMILY, f"{message.SCHEMA.name} does not belong into {REMOTE_LOG_METADATA}", 0)


def _segment_of(message: RemoteLogSegmentMetadataRecord) -> RemoteSegment:
    epochs = tuple(sorted({one.leader_epoch: one.offset for one in message.segment_leader_epochs}.items()))
    if not epochs:
        raise MalformedMessage(message.SCHEMA.name, "a segment has at least one leader epoch", 0)
    return RemoteSegment(
        _segment_id_of(message.remote_log_segment_id),
        message.start_offset,
        message.end_offset,
        message.broker_id,
        message.max_timestamp_ms,
        message.event_timestamp_ms,
        epochs,
        message.segment_size_in_bytes,
        message.custom_metadata,
        _state_of(message.remote_log_segment_state),
        message.txn_index_empty,
    )


def _segment_id_of(entry: Any) -> RemoteSegmentId:
    place = entry.topic_id_partition
    return RemoteSegmentId(
        TopicId(uuid.UUID(bytes=bytes(place.id))), place.name, place.partition, uuid.UUID(bytes=bytes(entry.id))
    )


def _state_of(number: int) -> RemoteSegmentState:
    try:
        return RemoteSegmentState(number)
    except ValueError:
        raise MalformedMessage(_FAMILY, f"{number} is not the state of a segment", 0) from None
