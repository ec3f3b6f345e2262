"""OffsetFetch (key 9), versions 0–10.

Behaviour
    Returns the committed offsets of groups, for the requested partitions or for all; -1 if there is no committed
    offset. With require_stable, a partition with a pending transactional commit gets UNSTABLE_OFFSET_COMMIT.
Version notes
    0   Kafka kept these offsets in ZooKeeper, Tailrace treats them like version 1
    2   all partitions of a group; one error for the whole group; before, each partition has the error
    5   leader epochs
    7   require_stable
    8   several groups
    9   member id and member epoch
    10  topic ids instead of names
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import find_topic
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.offsets.committed_offsets import FetchedOffset
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.protocol.codegen.field_versions import OFFSET_TOPIC_IDS, first_version_with
from tailrace.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Topic = OffsetFetchResponse.OffsetFetchResponseTopics
_Partition = OffsetFetchResponse.OffsetFetchResponsePartitions
_Take: TypeAlias = Callable[[_Group, int], None]

_SEVERAL_FROM = first_version_with("OffsetFetchRequest", "groups")
_GROUP_ERROR_FROM = first_version_with("OffsetFetchResponse", "error_code")


def handle(
    request: Request, now_ms: int, *, controller: Controller, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    body: OffsetFetchRequest = request.body
    answer = PendingAnswer(replies, request)
    version = request.version
    wanted = body.groups if version >= _SEVERAL_FROM else [_only_group(body)]

    def finish(found: list[_Group], now_ms: int) -> None:
        several = version >= _SEVERAL_FROM
        answer(OffsetFetchResponse(groups=found) if several else _of_one(found[0], version), now_ms)

    merged: MergedParts[_Group] = MergedParts(len(wanted), finish)
    for index, group in enumerate(wanted):
        _fetch(
            request, group, merged.part(index), now_ms, controller=controller, groups=groups, permissions=permissions
        )
    merged.begin(now_ms)


def _only_group(body: OffsetFetchRequest) -> OffsetFetchRequest.OffsetFetchRequestGroup:
    topics = None
    if body.topics is not None:
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes)
            for one in body.topics
        ]
    return OffsetFetchRequest.OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)


def _fetch(
    request: Request,
    group: OffsetFetchRequest.OffsetFetchRequestGroup,
    take: _Take,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
) -> None:
    def refuse(code: ErrorCode, now_ms: int) -> None:
        take(_refused(group, code, request.version), now_ms)

    if not permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group.group_id):
        refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED, now_ms)
        return
    wanted_topics = None
    refused: list[_Topic] = []
    if group.topics is not None:
        wanted_topics = []
        for asked in group.topics:
            identity = asked.topic_id if request.version >= OFFSET_TOPIC_IDS else asked.name
            found = find_topic(request, identity, Operation.DESCRIBE, controller=controller, permissions=permissions)
            if found.error in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                refused.append(_topic_refused(asked, found.error))
            else:
                wanted_topics.append((found.name, list(asked.partition_indexes)))

    def finish(topics: list[tuple[str, list[FetchedOffset]]], now_ms: int) -> None:
        found = []
        for name, partitions in topics:
            if group.topics is None and not permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, name):
                continue
            one = _topic(request.version, name, partitions, controller=controller)
            if one is not None:
                found.append(one)
        take(_Group(group_id=group.group_id, topics=found + refused), now_ms)

    groups.read(
        group.group_id,
        lambda shard: shard.commits.fetch(
            group.group_id,
            group.member_id,
            group.member_epoch,
            wanted_topics,
            require_stable=request.body.require_stable,
        ),
        finish,
        lambda error, now_ms: refuse(error.code, now_ms),
        now_ms,
    )


def _topic(version: int, name: str, partitions: list[FetchedOffset], *, controller: Controller) -> _Topic | None:
    """Return a topic of the response, or None if the version needs topic ids and the topic was deleted."""
    topic = _Topic(
        name=name,
        partitions=[
            _Partition(
                partition_index=one.partition,
                committed_offset=one.offset,
                committed_leader_epoch=one.leader_epoch,
                metadata=one.metadata,
                error_code=one.error,
            )
            for one in partitions
        ],
    )
    if version >= OFFSET_TOPIC_IDS:
        known = controller.image.topics.get(name)
        if known is None:
            return None
        topic.name = ""
        topic.topic_id = known.id
    return topic


def _topic_refused(asked: OffsetFetchRequest.OffsetFetchRequestTopics, code: ErrorCode) -> _Topic:
    return _Topic(
        name=asked.name,
        topic_id=asked.topic_id,
        partitions=[
            _Partition(
                partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code
            )
            for index in asked.partition_indexes
        ],
    )


def _refused(group: OffsetFetchRequest.OffsetFetchRequestGroup, code: ErrorCode, version: int) -> _Group:
    topics = []
    if version < _GROUP_ERROR_FROM:
        topics = [_topic_refused(asked, code) for asked in group.topics or ()]
    return _Group(group_id=group.group_id, error_code=code, topics=topics)


def _of_one(group: _Group, version: int) -> OffsetFetchResponse:
    """Return the response of versions before 8, which have one group."""
    return OffsetFetchResponse(
        error_code=group.error_code if version >= _GROUP_ERROR_FROM else ErrorCode.NONE,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
