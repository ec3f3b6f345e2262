"""DescribeGroups (key 15), versions 0–6.

Behaviour
    Returns state, protocol and members of classic groups, with the assignment of each member.
Version notes
    3   authorized operations
    4   static members
    6   GROUP_ID_NOT_FOUND for an unknown group; before, its state is Dead
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_description import authorized_operations
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Authorizer, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

_Take: TypeAlias = Callable[[DescribeGroupsResponse.DescribedGroup, int], None]

_NOT_FOUND_FROM = 6


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    body: DescribeGroupsRequest = request.body
    answer = PendingAnswer(replies, request)
    merged: MergedParts[DescribeGroupsResponse.DescribedGroup] = MergedParts(
        len(body.groups), lambda found, now_ms: answer(DescribeGroupsResponse(groups=found), now_ms)
    )
    for index, group_id in enumerate(body.groups):
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
    answer: _Take,
    now_ms: int,
    *,
    authorizer: Authorizer,
    groups: Groups,
    permissions: Permissions,
) -> None:
    if not permissions.allows(request, Operation.DESCRIBE, AclResource.GROUP, group_id):
        answer(
            DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
            now_ms,
        )
        return
    operations = authorized_operations(request, group_id, authorizer)
    version = request.version

    def describe(shard: GroupCoordinator) -> DescribeGroupsResponse.DescribedGroup:
        group = shard.describe(group_id)
        group.authorized_operations = operations
        return group

    def refuse(error: KafkaError, now_ms: int) -> None:
        is_missing = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        group = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state="Dead" if is_missing else "")
        if is_missing and version < _NOT_FOUND_FROM:
            group.authorized_operations = operations
        else:
            group.error_code = error.code
            group.error_message = str(error) if is_missing else None
        answer(group, now_ms)

    groups.read(group_id, describe, answer, refuse, now_ms)
