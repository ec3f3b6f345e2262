"""Records of streams groups taken into the state, as they are written or read again from the log."""

from __future__ import annotations

from collections.abc import MutableMapping

from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.streams.streams_group import NO_TARGET_EPOCH, StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import StreamsMember
from tailrace.coordinator.groups.streams.streams_records import read_target, with_current, with_metadata
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology
from tailrace.protocol.message import Message
from tailrace.protocol.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

StreamsKey = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTopologyKey
)


def replay_streams_record(groups: MutableMapping[str, Group], key: StreamsKey, value: Message | None) -> None:
    group = groups.get(key.group_id)
    if not isinstance(group, StreamsGroup):
        if value is None:
            return  # of a group that is gone, or was of another kind since
        group = groups[key.group_id] = StreamsGroup(key.group_id)
    if isinstance(key, StreamsGroupMemberMetadataKey):
        _replay_member(group, key.member_id, value)
    elif isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
        _replay_current(group, key.member_id, value)
    elif isinstance(key, StreamsGroupTargetAssignmentMemberKey):
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            assert isinstance(value, StreamsGroupTargetAssignmentMemberValue), value
            group.target[key.member_id] = read_target(value)
    elif isinstance(key, StreamsGroupTargetAssignmentMetadataKey):
        if value is None:
            group.put_target_epoch(NO_TARGET_EPOCH, 0)
        else:
            assert isinstance(value, StreamsGroupTargetAssignmentMetadataValue), value
            group.put_target_epoch(value.assignment_epoch, value.assignment_timestamp)
    elif isinstance(key, StreamsGroupMetadataKey):
        if value is None:
            del groups[key.group_id]
        else:
            assert isinstance(value, StreamsGroupMetadataValue), value
            group.put_epoch(value.epoch, value.metadata_hash, value.validated_topology_epoch)
            group.assignment_configs = {config.key: config.value for config in value.last_assignment_configs or ()}
    else:
        assert value is None or isinstance(value, StreamsGroupTopologyValue), value
        group.put_topology(None if value is None else StreamsTopology(value))


def _replay_member(group: StreamsGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.remove_member(member_id)
        return
    assert isinstance(value, StreamsGroupMemberMetadataValue), value
    group.put_member(with_metadata(group.members.get(member_id) or StreamsMember(member_id), value))


def _replay_current(group: StreamsGroup, member_id: str, value: Message | None) -> None:
    if value is None:
        group.take_back_assignment(member_id)
        return
    assert isinstance(value, StreamsGroupCurrentMemberAssignmentValue), value
    group.put_member(with_current(group.members.get(member_id) or StreamsMember(member_id), value))
