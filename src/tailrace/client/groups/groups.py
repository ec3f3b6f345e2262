"""Lists, describes and deletes the groups of a cluster.

A group is managed by one broker, its coordinator. Groups of the classic, consumer (KIP-848), streams (KIP-1071) and
share (KIP-932) protocols are described in the same form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import Refused, UnsupportedByBroker, only
from tailrace.client.groups.group_description import DescribedGroup, GroupMember
from tailrace.client.groups.share_groups import describe_share_group
from tailrace.client.groups.streams_groups import describe_streams_group
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerProtocolAssignment,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)

CONSUMER_PROTOCOL: Final = "consumer"
_LAST_WITH_DEAD_STATE: Final = 5  # up to this version DescribeGroups reports a missing group as Dead; later ones refuse
_VERSION_SIZE: Final = 2
_OTHER_TYPE_CODES: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


class ListedGroup(NamedTuple):
    group_id: str
    type: str  # classic, consumer, …; empty if the broker does not report it
    state: str
    protocol_type: str


def list_groups(cluster: ClusterClient) -> list[ListedGroup]:
    """Return the groups of all brokers, sorted by name."""

    def check(answer: ListGroupsResponse) -> None:
        if answer.error_code:
            raise Refused("groups", answer.error_code)

    found: dict[str, ListedGroup] = {}
    for node_id in sorted(cluster.metadata.brokers):
        answer: ListGroupsResponse = cluster.ask_node(node_id, ListGroupsRequest(), check=check)
        for one in answer.groups:
            found[one.group_id] = ListedGroup(one.group_id, one.group_type, one.group_state, one.protocol_type)
    return [found[name] for name in sorted(found)]


def describe_group(coordinators: Coordinators, group_id: str) -> DescribedGroup:
    """Return state and members of a group. Raise Refused with GROUP_ID_NOT_FOUND if it does not exist."""

    def check(answer: DescribeGroupsResponse) -> None:
        for one in answer.groups:
            if one.error_code:
                raise Refused(f"group {group_id}", one.error_code)

    answer: DescribeGroupsResponse = coordinators.ask(
        CoordinatorKind.GROUP,
        group_id,
        DescribeGroupsRequest(groups=[group_id]),
        check,
        version_max=_LAST_WITH_DEAD_STATE,
    )
    group = only(answer.groups, f"group {group_id}")
    if group.group_state == "Dead":
        for describe in (_describe_consumer_group, describe_streams_group):
            try:
                return describe(coordinators, group_id)
            except Refused as refused:
                if refused.code not in _OTHER_TYPE_CODES:
                    raise
        return describe_share_group(coordinators, group_id)
    members = [
        GroupMember(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            _assigned(one.member_assignment) if group.protocol_type == CONSUMER_PROTOCOL else (),
        )
        for one in group.members
    ]
    return DescribedGroup(
        group_id, "classic", group.group_state, group.protocol_type, group.protocol_data, tuple(members)
    )


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions of a classic member's assignment. Clients write it, so it may be malformed."""
    try:
        opened, _ = ConsumerProtocolAssignment.read(bytes(assignment), 0, _VERSION_SIZE)
    except ProtocolError:
        return ()
    return tuple(TopicPartition(one.topic, index) for one in opened.assigned_partitions for index in one.partitions)


def _describe_consumer_group(coordinators: Coordinators, group_id: str) -> DescribedGroup:
    def check(answer: ConsumerGroupDescribeResponse) -> None:
        for one in answer.groups:
            if one.error_code:
                raise Refused(f"group {group_id}", one.error_code, one.error_message)

    try:
        answer: ConsumerGroupDescribeResponse = coordinators.ask(
            CoordinatorKind.GROUP, group_id, ConsumerGroupDescribeRequest(group_ids=[group_id]), check
        )
    except UnsupportedByBroker:
        raise Refused(f"group {group_id}", ErrorCode.GROUP_ID_NOT_FOUND) from None
    group = only(answer.groups, f"group {group_id}")
    members = [
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            tuple(
                TopicPartition(topic.topic_name, index)
                for topic in one.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for one in group.members
    ]
    return DescribedGroup(
        group_id, "consumer", group.group_state, CONSUMER_PROTOCOL, group.assignor_name, tuple(members)
    )


def delete_group(coordinators: Coordinators, group_id: str) -> None:
    """Delete a group without members, and its committed offsets."""

    def check(answer: DeleteGroupsResponse) -> None:
        for one in answer.results:
            if one.error_code:
                raise Refused(f"group {group_id}", one.error_code)

    coordinators.ask(CoordinatorKind.GROUP, group_id, DeleteGroupsRequest(groups_names=[group_id]), check)


def delete_offsets(coordinators: Coordinators, group_id: str, partitions: Iterable[TopicPartition]) -> None:
    """Delete the committed offsets of partitions that none of the group's members reads."""
    topics: dict[str, OffsetDeleteRequest.OffsetDeleteRequestTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, OffsetDeleteRequest.OffsetDeleteRequestTopic(name=partition.topic))
        topic.partitions.append(OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=partition.partition))

    def check(answer: OffsetDeleteResponse) -> None:
        codes = [one.error_code for topic in answer.topics for one in topic.partitions]
        for code in (answer.error_code, *codes):
            if code:
                raise Refused(f"group {group_id}", code)

    coordinators.ask(
        CoordinatorKind.GROUP, group_id, OffsetDeleteRequest(group_id=group_id, topics=list(topics.values())), check
    )
