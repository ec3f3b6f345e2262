"""The StreamsGroupDescribe response of a group: epochs, topology, members and their tasks."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from tailrace.coordinator.groups.epoch.epoch_description import group_fields, member_fields
from tailrace.coordinator.groups.epoch.record_fields import PartitionLists
from tailrace.coordinator.groups.streams.configured_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
)
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import HeldTasks, StreamsMember, Tasks
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology, Subtopology, TopicInfo
from tailrace.protocol.messages import StreamsGroupDescribeResponse

_Subtopology = StreamsGroupDescribeResponse.Subtopology
_TopicInfo = StreamsGroupDescribeResponse.TopicInfo
_KeyValue = StreamsGroupDescribeResponse.KeyValue
_TASKS: PartitionLists[str] = PartitionLists(StreamsGroupDescribeResponse.TaskIds, "subtopology_id", is_sorted=True)


def describe_streams_group(group: StreamsGroup) -> StreamsGroupDescribeResponse.DescribedGroup:
    assert group.topology is not None, "the first member brings the topology"
    if group.configured is not None and group.configured.is_ready:
        epoch, subtopologies = group.configured.epoch, _configured(group.configured)
    else:
        epoch, subtopologies = group.topology.epoch, _reported(group.topology)
    return StreamsGroupDescribeResponse.DescribedGroup(
        **group_fields(group),
        topology=StreamsGroupDescribeResponse.Topology(epoch=epoch, subtopologies=subtopologies),
        members=[_described(group, group.members[member_id]) for member_id in group.member_ids_in_order()],
    )


def _configured(topology: ConfiguredTopology) -> list[_Subtopology]:
    """Return the subtopologies as configured with the existing topics."""
    assert topology.subtopologies is not None, "the topology is ready"
    return [
        _subtopology(
            name,
            one,
            [_topic(topic, info, info.configs.items()) for topic, info in one.repartition_source_topics.items()],
            [_topic(topic, info, info.configs.items()) for topic, info in one.changelog_topics.items()],
        )
        for name, one in topology.subtopologies.items()
    ]


def _reported(topology: StreamsTopology) -> list[_Subtopology]:
    """Return the subtopologies as the first member reported them."""
    return [
        _subtopology(
            name,
            one,
            [_topic(info.name, info, _configs(info)) for info in one.repartition_source_topics],
            [_topic(info.name, info, _configs(info)) for info in one.state_changelog_topics],
        )
        for name, one in sorted(topology.subtopologies.items())
    ]


def _subtopology(
    name: str, one: ConfiguredSubtopology | Subtopology, sources: list[_TopicInfo], changelogs: list[_TopicInfo]
) -> _Subtopology:
    return _Subtopology(
        subtopology_id=name,
        source_topics=sorted(one.source_topics),
        repartition_sink_topics=sorted(one.repartition_sink_topics),
        repartition_source_topics=sorted(sources, key=attrgetter("name")),
        state_changelog_topics=sorted(changelogs, key=attrgetter("name")),
    )


def _topic(name: str, info: InternalTopic | TopicInfo, configs: Iterable[tuple[str, str]]) -> _TopicInfo:
    return _TopicInfo(
        name=name,
        partitions=info.partitions,
        replication_factor=info.replication_factor,
        topic_configs=[_KeyValue(key=key, value=value) for key, value in configs],
    )


def _configs(info: TopicInfo) -> list[tuple[str, str]]:
    return [(config.key, config.value) for config in info.topic_configs]


def _described(group: StreamsGroup, member: StreamsMember) -> StreamsGroupDescribeResponse.Member:
    endpoint = member.user_endpoint
    return StreamsGroupDescribeResponse.Member(
        **member_fields(member),
        instance_id=member.instance_id,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StreamsGroupDescribeResponse.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[_KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, Tasks())),
    )


def _assignment(tasks: Tasks | HeldTasks) -> StreamsGroupDescribeResponse.Assignment:
    return StreamsGroupDescribeResponse.Assignment(
        active_tasks=_TASKS.write(tasks.active),
        standby_tasks=_TASKS.write(tasks.standby),
        warmup_tasks=_TASKS.write(tasks.warmup),
    )
