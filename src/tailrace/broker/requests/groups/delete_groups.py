"""DeleteGroups (key 42), versions 0–2.

Behaviour
    Deletes groups without members and their committed offsets. The state of a share group is deleted first.
    Each group has its own error.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_group_state import Errors, delete_state
from tailrace.broker.shares.shares import Shares
from tailrace.coordinator.groups.share.share_topics import Progress
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def handle(
    request: Request, now_ms: int, *, groups: Groups, permissions: Permissions, replies: Replies, shares: Shares
) -> None:
    body: DeleteGroupsRequest = request.body
    names = list(dict.fromkeys(body.groups_names))
    answer = PendingAnswer(replies, request)

    def finish(codes: list[ErrorCode], now_ms: int) -> None:
        results = [
            DeleteGroupsResponse.DeletableGroupResult(group_id=name, error_code=code)
            for name, code in zip(names, codes, strict=True)
        ]
        answer(DeleteGroupsResponse(results=results), now_ms)

    merged: MergedParts[ErrorCode] = MergedParts(len(names), finish)
    for index, name in enumerate(names):
        _delete(request, name, merged.part(index), now_ms, groups=groups, permissions=permissions, shares=shares)
    merged.begin(now_ms)


def _delete(
    request: Request,
    name: str,
    take: Callable[[ErrorCode, int], None],
    now_ms: int,
    *,
    groups: Groups,
    permissions: Permissions,
    shares: Shares,
) -> None:
    if not permissions.allows(request, Operation.DELETE, AclResource.GROUP, name):
        take(ErrorCode.GROUP_AUTHORIZATION_FAILED, now_ms)
        return

    def refuse(error: KafkaError, now_ms: int) -> None:
        take(error.code, now_ms)

    def forget(state: Progress, now_ms: int) -> None:
        kept = {topic: one.partitions for topic, one in state.items()}
        delete_state(name, kept, forgotten, now_ms, shares=shares)

    def forgotten(errors: Errors, now_ms: int) -> None:
        if errors:
            refuse(next(iter(errors.values())), now_ms)
            return
        groups.write(
            name,
            lambda shard: shard.delete_groups([name]),
            lambda codes, now_ms: take(codes[0], now_ms),
            refuse,
            now_ms,
        )

    groups.write(name, lambda shard: shard.share_offsets.delete_group(name), forget, refuse, now_ms)
