"""Keys and values written to `__consumer_offsets`, in the versions in which Apache Kafka 4.3 writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tailrace.coordinator.groups.group import CommittedOffset
from tailrace.coordinator.offsets.offset_bytes import write_commit
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.messages import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from tailrace.coordinator.groups.classic.classic_group import ClassicGroup

GROUP_VERSION = 3
OFFSET_VERSION = 4
OFFSET_WITH_EXPIRY_VERSION = 1  # the one version that says when an offset expires by itself


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """A group with its members as they are, and what they have been given to do."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=assignments[member.member_id],
            )
            for member in group.members.values()
        ],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_VERSION)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """A group that was just made, and has nobody in it yet."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_since_ms,
        members=[],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_VERSION)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), None)


def offset_record(
    group_id: str, topic: str, topic_id: bytes, partition: int, committed: CommittedOffset
) -> CoordinatorRecord:
    expires = committed.expire_timestamp_ms != -1
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=-1 if expires else committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    if not expires:
        value.topic_id = topic_id
    version = OFFSET_WITH_EXPIRY_VERSION if expires else OFFSET_VERSION
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return CoordinatorRecord(key, value, version, encoded=write_commit(group_id, topic, topic_id, partition, committed))


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
