"""StreamsHeartbeat: what a member of a streams group says of itself, and whether it may say so in its epoch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from tailrace.coordinator.groups.streams.configured_topology import ConfiguredSubtopology
from tailrace.coordinator.groups.streams.streams_member import Endpoint, StreamsMember, Tasks
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupTopologyValue

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class StreamsHeartbeat(NamedTuple):
    """A StreamsGroupHeartbeat request, free of the memory it was received in; None is what did not change."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    endpoint_epoch: int = 0
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: StreamsGroupTopologyValue | None = None
    owned: Tasks | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] | None = None
    asks_shutdown: bool = False


def told_of(member: StreamsMember, beat: StreamsHeartbeat) -> StreamsMember:
    """The member with what its heartbeat says; what it leaves out stays."""
    return replace(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms
        ),
        topology_epoch=member.topology_epoch if beat.topology is None else beat.topology.epoch,
        client_id=beat.client_id,
        client_host=beat.client_host,
        process_id=member.process_id if beat.process_id is None else beat.process_id,
        user_endpoint=member.user_endpoint if beat.user_endpoint is None else beat.user_endpoint,
        client_tags=member.client_tags if beat.client_tags is None else beat.client_tags,
    )


def check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> None:
    """A member may be one epoch behind, if the answer that told it of the new one was lost."""
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch < member.member_epoch and epoch == member.previous_epoch and _is_within(owned, member):
        return
    how = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Tasks | None, member: StreamsMember) -> bool:
    if owned is None:
        return False
    assigned = member.assigned
    pairs: tuple[tuple[Mapping[str, Collection[int]], Mapping[str, Collection[int]]], ...] = (
        (owned.active, assigned.active),
        (owned.standby, assigned.standby),
        (owned.warmup, assigned.warmup),
    )
    return all(
        name in has and all(partition in has[name] for partition in partitions)
        for says, has in pairs
        for name, partitions in says.items()
    )


def check_tasks(owned: Tasks | None, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    """A KafkaError for tasks that there cannot be."""
    for tasks in owned or ():
        for name, partitions in tasks.items():
            if name not in subtopologies:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology.")
            count = subtopologies[name].task_count
            for partition in partitions:
                if not 0 <= partition < count:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        f"Task {partition} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                        f"{count}",
                    )
