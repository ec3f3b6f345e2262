"""The target assignment of a streams group: the tasks of all members for one epoch."""

from __future__ import annotations

from typing import Final

from tailrace.coordinator.groups.epoch.target_computations import Target
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import StreamsMember, Tasks
from tailrace.coordinator.groups.streams.task_assignor import MemberSpec, SubtopologySpec, assign_tasks
from tailrace.model.java.java_order import hash_map_order

ASSIGNOR: Final = "sticky"


def streams_target(
    group: StreamsGroup,
    epoch: int,
    member: StreamsMember | None,
    configured: ConfiguredTopology,
    standby_replicas: int,
) -> Target[Tasks]:
    """Return the target of a group. While topics are missing, no member has tasks.

    `member` is a new or changed member, which the group does not have yet.
    """
    members = dict(group.members)
    order = group.member_ids_in_order()
    if member is not None:
        members[member.member_id] = member
        order.append(member.member_id)
    before = group.target.copy()
    specs = {
        member_id: MemberSpec(members[member_id].process_id, before.get(member_id, Tasks()))
        for member_id in hash_map_order(order)
    }
    if not configured.is_ready:
        return Target(epoch, ASSIGNOR, before, len(specs), lambda: dict.fromkeys(specs, Tasks()))
    assert configured.subtopologies is not None, "it is ready"
    subtopologies = {
        name: SubtopologySpec(one.task_count, bool(one.changelog_topics))
        for name, one in configured.subtopologies.items()
    }
    tasks = sum(one.task_count for one in subtopologies.values()) * (1 + standby_replicas)
    return Target(
        epoch,
        ASSIGNOR,
        before,
        len(specs) + tasks,
        lambda: assign_tasks(specs, subtopologies, standby_replicas),
    )
