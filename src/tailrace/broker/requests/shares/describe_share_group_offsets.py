"""DescribeShareGroupOffsets (key 90), versions 0–1.

Behaviour
    Returns the start offsets of share groups in partitions and their lag; -1 for partitions that a group has not begun
    to read. Without topics, all partitions with state of the group are returned.
Version notes
    1   the lag
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.partition_ends import Ends
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_group_state import Summaries, check_share_groups, read_summaries
from tailrace.broker.shares.shares import Shares
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from tailrace.shares.state.persisted_state import UNINITIALIZED_OFFSET, UNKNOWN_COUNT, PersistedState

_Asked: TypeAlias = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
_Group: TypeAlias = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_Topic: TypeAlias = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
_Partition: TypeAlias = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
_Take: TypeAlias = Callable[[_Group, int], None]

UNKNOWN_LAG = -1


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
    shares: Shares,
) -> None:
    body: DescribeShareGroupOffsetsRequest = request.body
    check_share_groups(controller=controller)
    answer = PendingAnswer(replies, request)
    merged: MergedParts[_Group] = MergedParts(
        len(body.groups), lambda found, now_ms: answer(DescribeShareGroupOffsetsResponse(groups=found), now_ms)
    )
    for index, group in enumerate(body.groups):
        _describe(
            request,
            group,
            merged.part(index),
            now_ms,
            controller=controller,
            groups=groups,
            permissions=permissions,
            shares=shares,
        )
    merged.begin(now_ms)


def _describe(
    request: Request,
    asked: _Asked,
    take: _Take,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    shares: Shares,
) -> None:
    group_id = asked.group_id
    if not permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group_id):
        take(_Group(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED), now_ms)
    elif asked.topics is None:
        groups.read(
            group_id,
            lambda shard: shard.share_offsets.kept(group_id),
            lambda kept, now_ms: _read_state(
                group_id,
                _visible(request, kept, controller=controller, permissions=permissions),
                [],
                take,
                now_ms,
                controller=controller,
                shares=shares,
            ),
            lambda error, now_ms: take(
                _Group(group_id=group_id, error_code=error.code, error_message=str(error)), now_ms
            ),
            now_ms,
        )
    else:
        known: dict[bytes, list[int]] = {}
        others = []
        for topic in asked.topics:
            found = controller.image.topics.get(topic.topic_name)
            if not permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic.topic_name):
                others.append(_without(topic.topic_name, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif found is None:
                others.append(_without(topic.topic_name, topic.partitions, ErrorCode.NONE))
            else:
                known[found.id] = list(topic.partitions)
        _read_state(group_id, known, others, take, now_ms, controller=controller, shares=shares)


def _visible(
    request: Request, kept: Mapping[bytes, frozenset[int]], *, controller: Controller, permissions: Permissions
) -> dict[bytes, list[int]]:
    return {
        topic: sorted(numbers)
        for topic, numbers in kept.items()
        if topic in controller.image.topics_by_id
        and permissions.allows(
            request, Operation.DESCRIBE, AclResource.TOPIC, controller.image.topics_by_id[topic].name
        )
    }


def _without(name: str, partitions: list[int], code: ErrorCode) -> _Topic:
    """Return the result of a topic that does not exist or that the client may not describe."""
    return _Topic(
        topic_name=name,
        partitions=[
            _Partition(
                partition_index=number,
                start_offset=UNINITIALIZED_OFFSET,
                error_code=code,
                error_message=None if code is ErrorCode.NONE else code.name,
            )
            for number in partitions
        ],
    )


def _read_state(
    group_id: str,
    asked: Mapping[bytes, list[int]],
    others: list[_Topic],
    take: _Take,
    now_ms: int,
    *,
    controller: Controller,
    shares: Shares,
) -> None:
    names = {topic: controller.image.topics_by_id[topic].name for topic in asked}

    def finish(summaries: Summaries, ends: Ends, now_ms: int) -> None:
        topics = [
            _Topic(
                topic_id=topic,
                topic_name=names[topic],
                partitions=[
                    _described(number, summaries[(topic, number)], ends.get(TopicPartition(names[topic], number)))
                    for number in numbers
                ],
            )
            for topic, numbers in asked.items()
        ]
        take(_Group(group_id=group_id, topics=[*topics, *others]), now_ms)

    def find_ends(summaries: Summaries, now_ms: int) -> None:
        begun = [
            TopicPartition(names[topic], number)
            for (topic, number), summary in summaries.items()
            if isinstance(summary, PersistedState) and _has_lag(summary)
        ]
        shares.ends.ask(begun, lambda ends, now_ms: finish(summaries, ends, now_ms), now_ms)

    read_summaries(group_id, asked, find_ends, now_ms, shares=shares)


def _has_lag(summary: PersistedState) -> bool:
    return summary.start_offset != UNINITIALIZED_OFFSET and summary.delivery_complete_count != UNKNOWN_COUNT


def _described(partition: int, summary: PersistedState | KafkaError | None, end: int | KafkaError | None) -> _Partition:
    if summary is None or isinstance(summary, KafkaError):
        return _Partition(partition_index=partition, start_offset=UNINITIALIZED_OFFSET, lag=UNKNOWN_LAG)
    if isinstance(end, KafkaError):
        return _Partition(partition_index=partition, error_code=end.code, error_message=str(end))
    return _Partition(
        partition_index=partition,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=UNKNOWN_LAG if end is None else end - summary.start_offset - summary.delivery_complete_count,
    )
