"""Records of consumer groups taken into the state, as they are written or read again from the log."""

from __future__ import annotations

from collections.abc import MutableMapping

from tailrace.coordinator.groups.consumer.consumer_group import NO_TARGET_EPOCH, ConsumerGroup, ResolvedPattern
from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_records import read_target, with_current, with_metadata
from tailrace.coordinator.groups.group import Group
from tailrace.protocol.message import Message
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

ConsumerKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupRegularExpressionKey
    | ConsumerGroupPartitionMetadataKey
)


def replay_consumer_record(groups: MutableMapping[str, Group], key: ConsumerKey, value: Message | None) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return  # of a group that is gone, or was of another kind since
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    if isinstance(key, ConsumerGroupMemberMetadataKey):
        _replay_member(group, key.member_id, value)
    elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
        _replay_current(group, key.member_id, value)
    elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue), value
            group.target[key.member_id] = read_target(value)
    elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
        if value is None:
            group.target_epoch, group.target_timestamp_ms = NO_TARGET_EPOCH, 0
        else:
            assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue), value
            group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp
    elif isinstance(key, ConsumerGroupMetadataKey):
        if value is None:
            del groups[key.group_id]
        else:
            assert isinstance(value, ConsumerGroupMetadataValue), value
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif isinstance(key, ConsumerGroupRegularExpressionKey):
        if value is None:
            group.patterns.pop(key.regular_expression, None)
        else:
            assert isinstance(value, ConsumerGroupRegularExpressionValue), value
            group.patterns[key.regular_expression] = ResolvedPattern(
                frozenset(value.topics), value.version, value.timestamp
            )
    else:
        group.has_partition_metadata = value is not None


def _replay_member(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.remove_member(member_id)
        return
    assert isinstance(value, ConsumerGroupMemberMetadataValue), value
    group.put_member(with_metadata(group.members.get(member_id) or ConsumerMember(member_id), value))


def _replay_current(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.take_back_assignment(member_id)
        return
    assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue), value
    group.put_member(with_current(group.members.get(member_id) or ConsumerMember(member_id), value))
