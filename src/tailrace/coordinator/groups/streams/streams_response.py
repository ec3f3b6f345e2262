"""Parts of the StreamsGroupHeartbeat response: tasks, partitions by endpoint, and statuses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from tailrace.coordinator.groups.epoch.record_fields import PartitionLists
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredSubtopology, Status
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import StreamsMember
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import StreamsGroupHeartbeatResponse

Statuses: TypeAlias = list[StreamsGroupHeartbeatResponse.Status]

_TASKS: PartitionLists[str] = PartitionLists(StreamsGroupHeartbeatResponse.TaskIds, "subtopology_id", is_sorted=True)


# Tasks and endpoints


def add_tasks(response: StreamsGroupHeartbeatResponse, member: StreamsMember) -> None:
    response.active_tasks = _TASKS.write(member.assigned.active)
    response.standby_tasks = _TASKS.write(member.assigned.standby)
    response.warmup_tasks = _TASKS.write(member.assigned.warmup)


def add_endpoints(
    response: StreamsGroupHeartbeatResponse,
    group: StreamsGroup,
    member: StreamsMember,
    known_epoch: int,
    image: MetadataImage,
) -> None:
    """Add the partitions of each member with an endpoint, if the member knows another endpoint epoch.

    `member` is the sender of the heartbeat, with its new tasks.
    """
    if group.endpoint_epoch == known_epoch:
        return
    subtopologies = group.configured.subtopologies if group.configured is not None else None
    members = [group.members[member_id] for member_id in group.member_ids_in_order() if member_id != member.member_id]
    response.partitions_by_user_endpoint = [
        StreamsGroupHeartbeatResponse.EndpointToPartitions(
            user_endpoint=StreamsGroupHeartbeatResponse.Endpoint(
                host=one.user_endpoint.host, port=one.user_endpoint.port
            ),
            active_partitions=_partitions(one.assigned.active, subtopologies or {}, image),
            standby_partitions=_partitions(one.assigned.standby, subtopologies or {}, image),
        )
        for one in (*members, member)
        if one.user_endpoint is not None
    ]


def _partitions(
    tasks: Mapping[str, Collection[int]], subtopologies: Mapping[str, ConfiguredSubtopology], image: MetadataImage
) -> list[StreamsGroupHeartbeatResponse.TopicPartition]:
    found = []
    for name in sorted(tasks.keys() & subtopologies.keys()):
        subtopology = subtopologies[name]
        for topic in sorted(subtopology.source_topics | subtopology.repartition_source_topics.keys()):
            existing = image.topics.get(topic)
            if existing is not None:
                # If the topic has fewer partitions than there are tasks, only the first tasks read it.
                partitions = sorted(tasks[name])[: len(existing.partitions)]
                found.append(StreamsGroupHeartbeatResponse.TopicPartition(topic=topic, partitions=partitions))
    return found


# Statuses


def status(code: Status, detail: str) -> StreamsGroupHeartbeatResponse.Status:
    return StreamsGroupHeartbeatResponse.Status(status_code=code, status_detail=detail)


def stale_topology(member_epoch: int, group_epoch: int) -> StreamsGroupHeartbeatResponse.Status:
    return status(
        Status.STALE_TOPOLOGY,
        f"The member's topology epoch {member_epoch} is behind the group's topology epoch {group_epoch}.",
    )


def assignment_delayed(reason: str) -> StreamsGroupHeartbeatResponse.Status:
    return status(Status.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {reason}.")


def shutdown_application(asked_by: str) -> StreamsGroupHeartbeatResponse.Status:
    return status(
        Status.SHUTDOWN_APPLICATION,
        f"Streams group member {asked_by} encountered a fatal error and requested a shutdown for the entire "
        "application.",
    )
