"""Heartbeat (key 12), versions 0–4.

Behaviour
    Keeps a member of a classic group alive. After REBALANCE_IN_PROGRESS the member must join again. While the group is
    being loaded, every heartbeat succeeds.
Version notes
    3   static members
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import HeartbeatRequest, HeartbeatResponse


def handle(
    request: Request, now_ms: int, *, groups: Groups, permissions: Permissions, replies: Replies
) -> HeartbeatResponse | None:
    body: HeartbeatRequest = request.body
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    answer = PendingAnswer(replies, request)

    def refuse(error: KafkaError, now_ms: int) -> None:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        answer(HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code), now_ms)

    groups.read(
        body.group_id,
        lambda shard: shard.heartbeat(
            body.group_id, body.member_id, body.group_instance_id, body.generation_id, now_ms
        ),
        lambda code, now_ms: answer(HeartbeatResponse(error_code=code), now_ms),
        refuse,
        now_ms,
    )
    return None
