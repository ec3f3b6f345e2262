"""Classic groups read again from the log."""

from __future__ import annotations

from tailrace.coordinator.groups.classic.classic_group import EMPTY, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.member import ClassicMember
from tailrace.protocol.messages import GroupMetadataValue


def restored_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
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
            protocol_type=value.protocol_type,
            protocols=[(value.protocol or "", bytes(one.subscription))],
            assignment=bytes(one.assignment),
        )
        group.add(member, None)
    group.subscribed_topics = group.find_subscribed_topics()
    return group
