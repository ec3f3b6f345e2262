"""Streams groups (KIP-1071): their members, and the partitions that their tasks read."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import Refused, UnknownTopic, UnsupportedByBroker, only
from tailrace.client.groups.group_description import DescribedGroup, GroupMember
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

STREAMS_PROTOCOL = "streams"


def describe_streams_group(coordinators: Coordinators, group_id: str) -> DescribedGroup:
    """Describe a streams group. Raise Refused with GROUP_ID_NOT_FOUND if there is no streams group of that name."""

    def check(answer: StreamsGroupDescribeResponse) -> None:
        for one in answer.groups:
            if one.error_code:
                raise Refused(f"group {group_id}", one.error_code, one.error_message)

    try:
        answer: StreamsGroupDescribeResponse = coordinators.ask(
            CoordinatorKind.GROUP, group_id, StreamsGroupDescribeRequest(group_ids=[group_id]), check
        )
    except UnsupportedByBroker:
        raise Refused(f"group {group_id}", ErrorCode.GROUP_ID_NOT_FOUND) from None
    group = only(answer.groups, f"group {group_id}")
    sources = _sources(group)
    members = tuple(
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            tuple(_read_by(one.assignment, sources, coordinators.cluster)),
        )
        for one in group.members
    )
    return DescribedGroup(group_id, STREAMS_PROTOCOL, group.group_state, STREAMS_PROTOCOL, "", members)


def _sources(group: StreamsGroupDescribeResponse.DescribedGroup) -> dict[str, list[str]]:
    """Return the source topics of each subtopology."""
    if group.topology is None:
        return {}
    return {
        one.subtopology_id: [*one.source_topics, *(info.name for info in one.repartition_source_topics)]
        for one in group.topology.subtopologies or ()
    }


def _read_by(
    assignment: StreamsGroupDescribeResponse.Assignment, sources: dict[str, list[str]], cluster: ClusterClient
) -> Iterator[TopicPartition]:
    """Yield the partitions of the active tasks: task N reads partition N of each source topic that has one."""
    for tasks in assignment.active_tasks:
        for topic in sources.get(tasks.subtopology_id, ()):
            try:
                known = set(cluster.topic(topic).topic_partitions)
            except UnknownTopic:
                continue
            for number in tasks.partitions:
                if TopicPartition(topic, number) in known:
                    yield TopicPartition(topic, number)
