"""StreamsGroupDescribe (key 89), version 0.

Behaviour
    Epochs, topology and members of streams groups, with the tasks that each member has and those it shall have. The
    topology is told with the numbers of partitions that were worked out, as soon as all topics are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import NOT_ASKED, AclResource, Authorizer, Operation, group_operations
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

_Described: TypeAlias = StreamsGroupDescribeResponse.DescribedGroup


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    body: StreamsGroupDescribeRequest = request.body
    answer = PendingAnswer(replies, request)
    merged: MergedParts[_Described] = MergedParts(
        len(body.group_ids), lambda found, now_ms: answer(StreamsGroupDescribeResponse(groups=found), now_ms)
    )
    for index, group_id in enumerate(body.group_ids):
        _describe(
            request,
            group_id,
            merged.part(index),
            now_ms,
            authorizer=authorizer,
            groups=groups,
            permissions=permissions,
        )
    merged.begin(now_ms)


def _describe(
    request: Request,
    group_id: str,
    answer: Callable[[_Described, int], None],
    now_ms: int,
    *,
    authorizer: Authorizer,
    groups: Groups,
    permissions: Permissions,
) -> None:
    problem = _problem(request, group_id, groups=groups, permissions=permissions)
    if problem is not None:
        answer(_Described(group_id=group_id, error_code=problem), now_ms)
        return

    def refuse(error: KafkaError, now_ms: int) -> None:
        answer(_Described(group_id=group_id, error_code=error.code, error_message=error.args[0]), now_ms)

    operations = NOT_ASKED
    if request.body.include_authorized_operations:
        context = request.context
        operations = group_operations(authorizer, context.principal, context.client_host, group_id)

    def describe(shard: GroupCoordinator) -> _Described:
        group = shard.streams.describe(group_id)
        if not all(
            permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic) for topic in _topics(group)
        ):
            raise KafkaError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "The described group uses topics that the client is not authorized to describe.",
            )
        group.authorized_operations = operations
        return group

    groups.read(group_id, describe, answer, refuse, now_ms)


def _problem(request: Request, group_id: str, *, groups: Groups, permissions: Permissions) -> ErrorCode | None:
    if not groups.is_enabled("streams"):
        return ErrorCode.UNSUPPORTED_VERSION
    if not permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None if group_id else ErrorCode.INVALID_GROUP_ID


def _topics(group: _Described) -> set[str]:
    topics: set[str] = set()
    for one in group.topology.subtopologies or () if group.topology is not None else ():
        topics.update(one.source_topics, one.repartition_sink_topics)
        topics.update(info.name for info in (*one.repartition_source_topics, *one.state_changelog_topics))
    return topics
