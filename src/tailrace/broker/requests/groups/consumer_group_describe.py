"""ConsumerGroupDescribe (key 69), versions 0–1.

Behaviour
    Epochs and members of consumer groups, with what each member has and what it shall have. A classic group is told to
    be none (GROUP_ID_NOT_FOUND): clients then ask DescribeGroups.
Version notes
    1   which protocol a member speaks
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import check_sees
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import NOT_ASKED, AclResource, Authorizer, Operation, group_operations
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

_Described: TypeAlias = ConsumerGroupDescribeResponse.DescribedGroup


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    body: ConsumerGroupDescribeRequest = request.body
    answer = PendingAnswer(replies, request)
    merged: MergedParts[_Described] = MergedParts(
        len(body.group_ids), lambda found, now_ms: answer(ConsumerGroupDescribeResponse(groups=found), now_ms)
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
    if not groups.is_enabled("consumer"):
        answer(_Described(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION), now_ms)
        return
    if not permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group_id):
        answer(_Described(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED), now_ms)
        return
    operations = NOT_ASKED
    if request.body.include_authorized_operations:
        context = request.context
        operations = group_operations(authorizer, context.principal, context.client_host, group_id)

    def describe(shard: GroupCoordinator) -> _Described:
        group = shard.describe_consumers(group_id)
        told = (one for member in group.members for one in (member.assignment, member.target_assignment))
        check_sees(
            request, {topic.topic_name for one in told for topic in one.topic_partitions}, permissions=permissions
        )
        group.authorized_operations = operations
        return group

    def refuse(error: KafkaError, now_ms: int) -> None:
        message = error.args[0] if error.args else None
        answer(_Described(group_id=group_id, error_code=error.code, error_message=message), now_ms)

    groups.read(group_id, describe, answer, refuse, now_ms)
