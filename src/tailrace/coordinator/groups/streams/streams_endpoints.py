"""Which partitions each instance of an application has, by the endpoint where it answers queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tailrace.coordinator.groups.streams.configured_topology import ConfiguredSubtopology
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import StreamsMember
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import StreamsGroupHeartbeatResponse

_Told = StreamsGroupHeartbeatResponse.EndpointToPartitions


def partitions_by_endpoint(group: StreamsGroup, member: StreamsMember, image: MetadataImage) -> list[_Told]:
    """Of all members that have an endpoint; of the one that asks, as it is now."""
    subtopologies = group.configured.subtopologies if group.configured is not None else None
    members = [group.members[member_id] for member_id in group.member_ids_in_order() if member_id != member.member_id]
    told = []
    for one in (*members, member):
        if one.user_endpoint is not None:
            told.append(
                _Told(
                    user_endpoint=StreamsGroupHeartbeatResponse.Endpoint(
                        host=one.user_endpoint.host, port=one.user_endpoint.port
                    ),
                    active_partitions=_partitions(one.assigned.active, subtopologies or {}, image),
                    standby_partitions=_partitions(one.assigned.standby, subtopologies or {}, image),
                )
            )
    return told


def _partitions(
    tasks: Mapping[str, Collection[int]], subtopologies: Mapping[str, ConfiguredSubtopology], image: MetadataImage
) -> list[StreamsGroupHeartbeatResponse.TopicPartition]:
    told = []
    for name in sorted(tasks.keys() & subtopologies.keys()):
        subtopology = subtopologies[name]
        for topic in sorted(subtopology.source_topics | subtopology.repartition_source_topics.keys()):
            found = image.topics.get(topic)
            if found is not None:
                # A topic with fewer partitions than there are tasks gives to the first ones.
                partitions = sorted(tasks[name])[: len(found.partitions)]
                told.append(StreamsGroupHeartbeatResponse.TopicPartition(topic=topic, partitions=partitions))
    return told
