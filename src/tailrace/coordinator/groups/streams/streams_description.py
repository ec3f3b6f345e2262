"""What is told of a streams group: its epochs, its topology, its members and their tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology, InternalTopic
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_member import HeldTasks, StreamsMember, Tasks
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology, TopicInfo
from tailrace.protocol.messages import StreamsGroupDescribeResponse

_Subtopology = StreamsGroupDescribeResponse.Subtopology
_TopicInfo = StreamsGroupDescribeResponse.TopicInfo
_KeyValue = StreamsGroupDescribeResponse.KeyValue


def describe_streams_group(group: StreamsGroup) -> StreamsGroupDescribeResponse.DescribedGroup:
    assert group.topology is not None, "the first member has told it"
    configured = group.configured
    return StreamsGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=(
            _configured(configured) if configured is not None and configured.is_ready else _as_told(group.topology)
        ),
        members=[_described(group, group.members[member_id]) for member_id in group.member_ids_in_order()],
    )


def _configured(topology: ConfiguredTopology) -> StreamsGroupDescribeResponse.Topology:
    assert topology.subtopologies is not None, "it is ready"
    return StreamsGroupDescribeResponse.Topology(
        epoch=topology.epoch,
        subtopologies=[
            _Subtopology(
                subtopology_id=name,
                source_topics=sorted(one.source_topics),
                repartition_sink_topics=sorted(one.repartition_sink_topics),
                repartition_source_topics=_internal_topics(one.repartition_source_topics),
                state_changelog_topics=_internal_topics(one.changelog_topics),
            )
            for name, one in topology.subtopologies.items()
        ],
    )


def _internal_topics(topics: Mapping[str, InternalTopic]) -> list[_TopicInfo]:
    return [
        _TopicInfo(
            name=name,
            partitions=topics[name].partitions,
            replication_factor=topics[name].replication_factor,
            topic_configs=[_KeyValue(key=key, value=value) for key, value in topics[name].configs.items()],
        )
        for name in sorted(topics)
    ]


def _as_told(topology: StreamsTopology) -> StreamsGroupDescribeResponse.Topology:
    return StreamsGroupDescribeResponse.Topology(
        epoch=topology.epoch,
        subtopologies=[
            _Subtopology(
                subtopology_id=name,
                source_topics=sorted(one.source_topics),
                repartition_sink_topics=sorted(one.repartition_sink_topics),
                repartition_source_topics=_told_topics(one.repartition_source_topics),
                state_changelog_topics=_told_topics(one.state_changelog_topics),
            )
            for name, one in sorted(topology.subtopologies.items())
        ],
    )


def _told_topics(topics: Iterable[TopicInfo]) -> list[_TopicInfo]:
    return [
        _TopicInfo(
            name=info.name,
            partitions=info.partitions,
            replication_factor=info.replication_factor,
            topic_configs=[_KeyValue(key=config.key, value=config.value) for config in info.topic_configs],
        )
        for info in sorted(topics, key=lambda info: info.name)
    ]


def _described(group: StreamsGroup, member: StreamsMember) -> StreamsGroupDescribeResponse.Member:
    endpoint = member.user_endpoint
    return StreamsGroupDescribeResponse.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
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
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Mapping[str, Collection[int]]) -> list[StreamsGroupDescribeResponse.TaskIds]:
    return [
        StreamsGroupDescribeResponse.TaskIds(subtopology_id=name, partitions=sorted(tasks[name]))
        for name in sorted(tasks)
    ]
