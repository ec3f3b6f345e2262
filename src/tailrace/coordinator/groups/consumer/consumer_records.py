"""Keys and values of consumer groups in `__consumer_offsets`, and members read from them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tailrace.coordinator.groups.consumer.assignors import Assignment
from tailrace.coordinator.groups.consumer.consumer_member import (
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
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


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Who a member is, and what it subscribes to."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None,  # which is not what it is by default
    )
    if member.classic is not None:
        value.classic_member_metadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """How far a member has come, and what it has."""
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_told_epochs(member.assigned),
            partitions_pending_revocation=_told_epochs(member.to_revoke),
        ),
    )


def _told_epochs(partitions: PartitionEpochs) -> list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    return [
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic, partitions=sorted(epochs), assignment_epochs=[epochs[number] for number in sorted(epochs)]
        )
        for topic, epochs in partitions.items()
    ]


def target_record(group_id: str, member_id: str, assignment: Mapping[bytes, Iterable[int]]) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic, partitions=sorted(partitions))
                for topic, partitions in assignment.items()
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def pattern_record(
    group_id: str, pattern: str, topics: Iterable[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms),
    )


# Tombstones


def pattern_tombstone(group_id: str, pattern: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Of what Kafka wrote before 4.1; the hash in the epoch's record has taken its place."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def current_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Everything that is known of a member, in the order in which it can be taken back."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> list[CoordinatorRecord]:
    member_ids = list(member_ids)
    return [
        *(current_tombstone(group_id, member_id) for member_id in member_ids),
        *(target_tombstone(group_id, member_id) for member_id in member_ids),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(member_tombstone(group_id, member_id) for member_id in member_ids),
        *(pattern_tombstone(group_id, pattern) for pattern in patterns),
        partition_metadata_tombstone(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


# Read again


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_pattern=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols),
        ),
    )


def with_current(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    known = value.state in MemberState._value2member_map_
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_read_epochs(value.assigned_partitions, value.member_epoch),
        to_revoke=_read_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_epochs(
    told: Iterable[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], member_epoch: int
) -> PartitionEpochs:
    """Before 4.2 no epochs were kept with the partitions: then they are as old as the member's own."""
    default = max(member_epoch, 0)
    partitions: dict[bytes, Mapping[int, int]] = {}
    for topic in told:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [default] * len(topic.partitions)
        partitions[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return partitions


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
