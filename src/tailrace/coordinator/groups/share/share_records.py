"""Records of share groups in `__consumer_offsets`: their messages and fields, and the record of this kind alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tailrace.coordinator.groups.epoch.epoch_group import Assignment
from tailrace.coordinator.groups.epoch.epoch_records import (
    PARTITION_STATE_CODES,
    EpochMessages,
    EpochRecords,
    MessagePair,
)
from tailrace.coordinator.groups.epoch.record_fields import PartitionLists, RecordField, java_sorted, same_fields
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

_CURRENT: PartitionLists[bytes] = PartitionLists(ShareGroupCurrentMemberAssignmentValue.TopicPartitions, "topic_id")
_TARGET: PartitionLists[bytes] = PartitionLists(ShareGroupTargetAssignmentMemberValue.TopicPartition, "topic_id")

SHARE_RECORDS: Final[EpochRecords[ShareMember, Assignment]] = EpochRecords(
    messages=EpochMessages(
        group=MessagePair(ShareGroupMetadataKey, ShareGroupMetadataValue),
        member=MessagePair(ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
        target_epoch=MessagePair(ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
        target=MessagePair(ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
        current=MessagePair(ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    ),
    new_member=ShareMember,
    member_fields=[
        *same_fields("rack_id", "client_id", "client_host"),
        RecordField("topic_names", "subscribed_topic_names", java_sorted, frozenset),
    ],
    state_codes=PARTITION_STATE_CODES,
    write_current=lambda member: {"assigned_partitions": _CURRENT.write(member.assigned)},
    read_current=lambda value: {"assigned": _CURRENT.read(value.assigned_partitions)},
    write_target=lambda assignment: {"topic_partitions": _TARGET.write(assignment)},
    read_target=lambda value: _TARGET.read(value.topic_partitions),
)


# The record that only share groups have


def topics_record(group_id: str, topics: ShareTopics, image: MetadataImage) -> CoordinatorRecord:
    """Return the record of the partitions whose state is kept, being initialized or being deleted."""
    return _topics_record(group_id, topics.initializing, topics.initialized, topics.deleting_names(image))


def all_deleting_record(group_id: str, topics: Progress) -> CoordinatorRecord:
    """Return the record of a group that is about to be deleted."""
    return _topics_record(group_id, {}, {}, {topic: one.name for topic, one in topics.items()})


def _topics_record(
    group_id: str, initializing: Progress, initialized: Progress, deleting: Mapping[bytes, str]
) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=_write_progress(initializing),
            initialized_topics=_write_progress(initialized),
            deleting_topics=[
                ShareGroupStatePartitionMetadataValue.TopicInfo(topic_id=topic, topic_name=name)
                for topic, name in deleting.items()
            ],
        ),
    )


def _write_progress(progress: Progress) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
            topic_id=topic, topic_name=one.name, partitions=sorted(one.partitions)
        )
        for topic, one in progress.items()
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    return [
        *SHARE_RECORDS.members_tombstones(group_id, member_ids),
        CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        SHARE_RECORDS.group_tombstone(group_id),
    ]


def read_topics(value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> ShareTopics:
    return ShareTopics(
        initializing=_read_progress(value.initializing_topics),
        initialized=_read_progress(value.initialized_topics),
        deleting=frozenset(topic.topic_id for topic in value.deleting_topics),
        since_ms=now_ms,
    )


def _read_progress(structs: Iterable[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]) -> Progress:
    return {topic.topic_id: TopicProgress(topic.topic_name, frozenset(topic.partitions)) for topic in structs}
