"""Share groups (KIP-932): their members and start offsets, and requests that set or delete start offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import Refused, UnsupportedByBroker, only
from tailrace.client.groups.group_description import DescribedGroup, GroupMember
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

SHARE_PROTOCOL = "share"


class ShareOffset(NamedTuple):
    """The start offset of a share partition, and its lag; None if not known yet."""

    start: Offset | None
    lag: int | None


def describe_share_group(coordinators: Coordinators, group_id: str) -> DescribedGroup:
    """Describe a share group. Raise Refused with GROUP_ID_NOT_FOUND if there is no share group of that name."""

    def check(answer: ShareGroupDescribeResponse) -> None:
        for one in answer.groups:
            if one.error_code:
                raise Refused(f"group {group_id}", one.error_code, one.error_message)

    try:
        answer: ShareGroupDescribeResponse = coordinators.ask(
            CoordinatorKind.GROUP, group_id, ShareGroupDescribeRequest(group_ids=[group_id]), check
        )
    except UnsupportedByBroker:
        raise Refused(f"group {group_id}", ErrorCode.GROUP_ID_NOT_FOUND) from None
    group = only(answer.groups, f"group {group_id}")
    members = tuple(
        GroupMember(
            one.member_id,
            None,
            one.client_id,
            one.client_host,
            tuple(
                TopicPartition(topic.topic_name, index)
                for topic in one.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for one in group.members
    )
    return DescribedGroup(group_id, SHARE_PROTOCOL, group.group_state, SHARE_PROTOCOL, group.assignor_name, members)


def share_offsets(coordinators: Coordinators, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Return the start offsets and lags of all partitions for which the group has state."""

    def check(answer: DescribeShareGroupOffsetsResponse) -> None:
        for group in answer.groups:
            codes = [one.error_code for topic in group.topics for one in topic.partitions]
            for code in (group.error_code, *codes):
                if code:
                    raise Refused(f"group {group_id}", code)

    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    answer: DescribeShareGroupOffsetsResponse = coordinators.ask(
        CoordinatorKind.GROUP, group_id, DescribeShareGroupOffsetsRequest(groups=[asked]), check
    )
    return {
        TopicPartition(topic.topic_name, one.partition_index): ShareOffset(
            _none_if_negative(one.start_offset), _none_if_negative(one.lag)
        )
        for topic in only(answer.groups, f"group {group_id}").topics
        for one in topic.partitions
    }


def _none_if_negative(number: int) -> int | None:
    return number if number >= 0 else None


def alter_share_offsets(coordinators: Coordinators, group_id: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Set the start offsets of a share group without members. The group is created if it does not exist."""
    topics: dict[str, AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = {}
    for partition, offset in offsets.items():
        topic = topics.setdefault(
            partition.topic,
            AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name=partition.topic),
        )
        topic.partitions.append(
            AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
                partition_index=partition.partition, start_offset=offset
            )
        )

    def check(answer: AlterShareGroupOffsetsResponse) -> None:
        codes = [one.error_code for topic in answer.responses for one in topic.partitions]
        for code in (answer.error_code, *codes):
            if code:
                raise Refused(f"group {group_id}", code)

    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=list(topics.values()))
    coordinators.ask(CoordinatorKind.GROUP, group_id, request, check)


def delete_share_offsets(coordinators: Coordinators, group_id: str, topics: Iterable[str]) -> None:
    """Delete the offsets of topics of a share group without members."""

    def check(answer: DeleteShareGroupOffsetsResponse) -> None:
        for code in (answer.error_code, *(one.error_code for one in answer.responses)):
            if code:
                raise Refused(f"group {group_id}", code)

    named = [DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=named)
    coordinators.ask(CoordinatorKind.GROUP, group_id, request, check)
