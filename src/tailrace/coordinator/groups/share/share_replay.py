"""Records of share groups taken into the state, as they are written or read again from the log."""

from __future__ import annotations

from collections.abc import MutableMapping

from tailrace.coordinator.groups.consumer.consumer_group import NO_TARGET_EPOCH
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.share.share_group import ShareGroup
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_records import read_target, read_topics, with_current, with_metadata
from tailrace.protocol.message import Message
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

ShareKey = (
    ShareGroupMetadataKey
    | ShareGroupMemberMetadataKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupStatePartitionMetadataKey
)


def replay_share_record(groups: MutableMapping[str, Group], key: ShareKey, value: Message | None, now_ms: int) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, ShareGroup):
        if value is None:
            return  # of a group that is gone, or was of another kind since
        group = groups[key.group_id] = ShareGroup(key.group_id)
    if isinstance(key, ShareGroupMemberMetadataKey):
        _replay_member(group, key.member_id, value)
    elif isinstance(key, ShareGroupCurrentMemberAssignmentKey):
        _replay_current(group, key.member_id, value)
    elif isinstance(key, ShareGroupTargetAssignmentMemberKey):
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            assert isinstance(value, ShareGroupTargetAssignmentMemberValue), value
            group.target[key.member_id] = read_target(value)
    elif isinstance(key, ShareGroupTargetAssignmentMetadataKey):
        if value is None:
            group.target_epoch, group.target_timestamp_ms = NO_TARGET_EPOCH, 0
        else:
            assert isinstance(value, ShareGroupTargetAssignmentMetadataValue), value
            group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp
    elif isinstance(key, ShareGroupStatePartitionMetadataKey):
        assert value is None or isinstance(value, ShareGroupStatePartitionMetadataValue), value
        group.topics = None if value is None else read_topics(value, now_ms)
    elif value is None:
        del groups[key.group_id]
    else:
        assert isinstance(value, ShareGroupMetadataValue), value
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_member(group: ShareGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.members.pop(member_id, None)
        return
    assert isinstance(value, ShareGroupMemberMetadataValue), value
    group.put_member(with_metadata(group.members.get(member_id) or ShareMember(member_id), value))


def _replay_current(group: ShareGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.take_back_assignment(member_id)
        return
    assert isinstance(value, ShareGroupCurrentMemberAssignmentValue), value
    group.put_member(with_current(group.members.get(member_id) or ShareMember(member_id), value))
