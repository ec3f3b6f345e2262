"""Records of consumer groups in `__consumer_offsets`: their messages and fields, and the records of this kind alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tailrace.coordinator.groups.consumer.consumer_member import ClassicMetadata, ConsumerMember
from tailrace.coordinator.groups.epoch.epoch_group import Assignment
from tailrace.coordinator.groups.epoch.epoch_records import (
    PARTITION_STATE_CODES,
    EpochMessages,
    EpochRecords,
    MessagePair,
)
from tailrace.coordinator.groups.epoch.record_fields import PartitionLists, RecordField, java_sorted, same_fields
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

_CURRENT: PartitionLists[bytes] = PartitionLists(ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions, "topic_id")
_TARGET: PartitionLists[bytes] = PartitionLists(ConsumerGroupTargetAssignmentMemberValue.TopicPartition, "topic_id")


def _write_classic(classic: ClassicMetadata | None) -> ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None:
    if classic is None:
        return None
    return ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in classic.protocols
        ],
    )


def _read_classic(value: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None) -> ClassicMetadata | None:
    if value is None:
        return None
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in value.supported_protocols)
    return ClassicMetadata(value.session_timeout_ms, protocols)


def _write_current(member: ConsumerMember) -> dict[str, Any]:
    return {
        "assigned_partitions": _CURRENT.write_epochs(member.assigned),
        "partitions_pending_revocation": _CURRENT.write_epochs(member.to_revoke),
    }


def _read_current(value: ConsumerGroupCurrentMemberAssignmentValue) -> dict[str, Any]:
    default_epoch = max(value.member_epoch, 0)
    return {
        "assigned": _CURRENT.read_epochs(value.assigned_partitions, default_epoch),
        "to_revoke": _CURRENT.read_epochs(value.partitions_pending_revocation, default_epoch),
    }


CONSUMER_RECORDS: Final[EpochRecords[ConsumerMember, Assignment]] = EpochRecords(
    messages=EpochMessages(
        group=MessagePair(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        member=MessagePair(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        target_epoch=MessagePair(ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        target=MessagePair(ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        current=MessagePair(ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    ),
    new_member=ConsumerMember,
    member_fields=[
        *same_fields("instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms", "server_assignor"),
        RecordField("topic_names", "subscribed_topic_names", java_sorted, frozenset),
        RecordField("topic_pattern", "subscribed_topic_regex"),
        RecordField("classic", "classic_member_metadata", _write_classic, _read_classic),
    ],
    state_codes=PARTITION_STATE_CODES,
    write_current=_write_current,
    read_current=_read_current,
    write_target=lambda assignment: {"topic_partitions": _TARGET.write(assignment)},
    read_target=lambda value: _TARGET.read(value.topic_partitions),
)


# Records that only consumer groups have


def pattern_record(
    group_id: str, pattern: str, topics: Iterable[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms),
    )


def pattern_tombstone(group_id: str, pattern: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the tombstone of a record that Kafka wrote before 4.1. The hash in the group record replaces it."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def group_tombstones(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> list[CoordinatorRecord]:
    return [
        *CONSUMER_RECORDS.members_tombstones(group_id, member_ids),
        *(pattern_tombstone(group_id, pattern) for pattern in patterns),
        partition_metadata_tombstone(group_id),
        CONSUMER_RECORDS.group_tombstone(group_id),
    ]
