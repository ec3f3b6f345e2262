"""JoinGroup (key 11), versions 0–9.

Behaviour
    A client becomes a member of a classic group, or joins again during a rebalance. The response is sent when all
    members have joined. The leader gets the list of members, and sends the assignments with SyncGroup.
Version notes
    1   a rebalance timeout besides the session timeout
    4   a new member gets its id in an error response first, and joins again with it
    5   static members
    7   protocol type
    8   the reason of the join
    9   the leader can skip the assignment when a static member comes back
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import visibility_of
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Authorizer, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.classic.join_request import JoinRequest
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import JoinGroupRequest, JoinGroupResponse

_NULLABLE_PROTOCOL_FROM = 7


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> None:
    body: JoinGroupRequest = request.body
    answer_with = PendingAnswer(replies, request)
    version = request.version
    member_id = body.member_id

    def answer(response: JoinGroupResponse, now_ms: int) -> None:
        response.protocol_name = response.protocol_name or (None if version >= _NULLABLE_PROTOCOL_FROM else "")
        answer_with(response, now_ms)

    def refuse(code: ErrorCode) -> None:
        answer(JoinGroupResponse(error_code=code, member_id=member_id), now_ms)

    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        answer(JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED), now_ms)
        return
    if not body.group_id:
        refuse(ErrorCode.INVALID_GROUP_ID)
        return
    settings = groups.settings
    if not settings.session_timeout_ms_min <= body.session_timeout_ms <= settings.session_timeout_ms_max:
        refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
        return
    join = JoinRequest(
        group_id=body.group_id,
        member_id=member_id,
        instance_id=body.group_instance_id,
        client_id=request.client_id or "",
        client_host=f"/{request.context.client_host}",
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=body.rebalance_timeout_ms if version >= 1 else body.session_timeout_ms,
        protocol_type=body.protocol_type,
        protocols=[(one.name, bytes(one.metadata)) for one in body.protocols],
        reason=body.reason or "not provided",
        version=version,
        is_visible=visibility_of(request, authorizer=authorizer),
    )
    groups.write(
        body.group_id,
        lambda shard: shard.join(join, answer, now_ms),
        lambda _, __: None,
        lambda error, now_ms: answer(_refused(error), now_ms),
        now_ms,
    )


def _refused(error: KafkaError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code)
