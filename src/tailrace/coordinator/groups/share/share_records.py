"""Keys and values of share groups in `__consumer_offsets`, and members and topics read from them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tailrace.coordinator.groups.consumer.assignors import Assignment
from tailrace.coordinator.groups.consumer.consumer_member import MemberState
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_topics import Progress, ShareTopics, TopicProgress
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupMetadataKey(group_id=group_id), ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    )


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Who a member is, and what it subscribes to."""
    return CoordinatorRecord(
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names, key=lambda name: name.encode("utf-16-be")),
        ),
    )


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """How far a member has come, and what it has."""
    return CoordinatorRecord(
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=[
                ShareGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=topic, partitions=sorted(partitions))
                for topic, partitions in member.assigned.items()
            ],
        ),
    )


def target_record(group_id: str, member_id: str, assignment: Mapping[bytes, Iterable[int]]) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                ShareGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic, partitions=sorted(partitions))
                for topic, partitions in assignment.items()
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def topics_record(group_id: str, topics: ShareTopics, image: MetadataImage) -> CoordinatorRecord:
    """Which partitions' state is kept, or about to be, or about to go."""
    return _topics_record(group_id, topics.initializing, topics.initialized, topics.deleting_names(image))


def all_deleting_record(group_id: str, topics: Progress) -> CoordinatorRecord:
    """The group is about to be deleted."""
    return _topics_record(group_id, {}, {}, {topic: one.name for topic, one in topics.items()})


def _topics_record(
    group_id: str, initializing: Progress, initialized: Progress, deleting: Mapping[bytes, str]
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=_told(initializing),
            initialized_topics=_told(initialized),
            deleting_topics=[
                ShareGroupStatePartitionMetadataValue.TopicInfo(topic_id=topic, topic_name=name)
                for topic, name in deleting.items()
            ],
        ),
    )


def _told(progress: Progress) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
            topic_id=topic, topic_name=one.name, partitions=sorted(one.partitions)
        )
        for topic, one in progress.items()
    ]


# Tombstones


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Everything that is known of a member, in the order in which it can be taken back."""
    return [
        CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    of_members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in of_members),
        *(target for _, target, _ in of_members),
        CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(member for _, _, member in of_members),
        CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), None),
    ]


# Read again


def with_metadata(member: ShareMember, value: ShareGroupMemberMetadataValue) -> ShareMember:
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )


def with_current(member: ShareMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    known = value.state in MemberState._value2member_map_
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
    )


def read_target(value: ShareGroupTargetAssignmentMemberValue) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def read_topics(value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> ShareTopics:
    return ShareTopics(
        initializing=_read(value.initializing_topics),
        initialized=_read(value.initialized_topics),
        deleting=frozenset(topic.topic_id for topic in value.deleting_topics),
        since_ms=now_ms,
    )


def _read(told: Iterable[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]) -> Progress:
    return {topic.topic_id: TopicProgress(topic.topic_name, frozenset(topic.partitions)) for topic in told}
