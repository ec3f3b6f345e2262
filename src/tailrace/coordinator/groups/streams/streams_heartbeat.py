"""StreamsHeartbeat: a StreamsGroupHeartbeat request, its result, and the checks of the tasks that it reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tailrace.coordinator.groups.streams.configured_topology import ConfiguredSubtopology, InternalTopic
from tailrace.coordinator.groups.streams.streams_member import Endpoint, StreamsMember, Tasks
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupHeartbeatResponse, StreamsGroupTopologyValue


class StreamsHeartbeat(NamedTuple):
    """A StreamsGroupHeartbeat request, decoded. None means that a field has not changed."""

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


class StreamsHeartbeatResult(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    topics_to_create: Mapping[str, InternalTopic]  # internal topics that the broker has to create


def with_heartbeat(member: StreamsMember, beat: StreamsHeartbeat) -> StreamsMember:
    """Return the member with the fields that its heartbeat reports."""
    return member.with_reported(
        rack_id=beat.rack_id,
        rebalance_timeout_ms=None if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms,
        topology_epoch=None if beat.topology is None else beat.topology.epoch,
        client_id=beat.client_id,
        client_host=beat.client_host,
        process_id=beat.process_id,
        user_endpoint=beat.user_endpoint,
        client_tags=beat.client_tags,
    )


def owns_assigned(owned: Tasks | None, member: StreamsMember) -> bool:
    """Return True if the member reports its tasks and has been assigned all of them."""
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
        for reported, has in pairs
        for name, partitions in reported.items()
    )


def check_tasks(owned: Tasks | None, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
    """Raise INVALID_REQUEST for tasks that the topology does not have."""
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
