"""The target of a streams group: everybody's tasks for one epoch, and the records that say so."""

from __future__ import annotations

import logging

from tailrace.coordinator.groups.streams import streams_records as records_of
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology
from tailrace.coordinator.groups.streams.java_collections import hash_map_order
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import StreamsMember, Tasks
from tailrace.coordinator.groups.streams.task_assignor import MemberSpec, SubtopologySpec, assign_tasks
from tailrace.coordinator.shard import CoordinatorRecord

_log = logging.getLogger(__name__)


def assign_group(
    group: StreamsGroup,
    epoch: int,
    member: StreamsMember | None,
    configured: ConfiguredTopology,
    standby_replicas: int,
    records: list[CoordinatorRecord],
    now_ms: int,
) -> dict[str, Tasks]:
    """`member` is the one that is new, or as it will be. As long as topics are missing, nobody has anything to do."""
    members = dict(group.members)
    order = group.member_ids_in_order()
    if member is not None:
        members[member.member_id] = member
        order.append(member.member_id)
    specs = {
        member_id: MemberSpec(members[member_id].process_id, group.target.get(member_id, Tasks()))
        for member_id in hash_map_order(order)
    }
    if configured.is_ready:
        assert configured.subtopologies is not None, "it is ready"
        subtopologies = {
            name: SubtopologySpec(one.task_count, bool(one.changelog_topics))
            for name, one in configured.subtopologies.items()
        }
        target = assign_tasks(specs, subtopologies, standby_replicas)
    else:
        target = dict.fromkeys(specs, Tasks())
    for member_id, tasks in target.items():
        if tasks != group.target.get(member_id):
            records.append(records_of.target_record(group.group_id, member_id, tasks))
    records.append(records_of.target_epoch_record(group.group_id, epoch, now_ms))
    _log.info("group %s: target of epoch %d for %d members", group.group_id, epoch, len(specs))
    return target
