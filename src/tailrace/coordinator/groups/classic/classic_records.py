"""Records of classic groups in `__consumer_offsets`, in the version that Apache Kafka 4.3 writes: written and read."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.coordinator.groups.classic.classic_group import EMPTY, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import ClassicMember
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.messages import GroupMetadataKey, GroupMetadataValue

_VERSION = 3


def value_record(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, _VERSION)


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of a group with its present members and the given assignment of each."""
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
    return value_record(group.group_id, value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the record of a new group, which has no members yet."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_since_ms,
        members=[],
    )
    return value_record(group.group_id, value)


def restored_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group that a record describes."""
    group = ClassicGroup(group_id, value.current_state_timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.leader_id = value.leader
    group.state = STABLE if value.members else EMPTY
    for one in value.members:
        member = ClassicMember(
            one.member_id,
            instance_id=one.group_instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            rebalance_timeout_ms=one.session_timeout if one.rebalance_timeout == -1 else one.rebalance_timeout,
            session_timeout_ms=one.session_timeout,
            protocols=[(value.protocol or "", bytes(one.subscription))],
            assignment=bytes(one.assignment),
        )
        group.add(member, value.protocol_type, None)
    group.subscribed_topics = group.find_subscribed_topics()
    return group
