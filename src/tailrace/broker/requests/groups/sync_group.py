"""SyncGroup (key 14), versions 0–5.

Behaviour
    Returns the assignment of a member. The leader of the group sends the assignments of all members. The response is
    sent when the leader has sent them and they are durable.
Version notes
    3   static members
    5   protocol type and name are required and must match the group's
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.classic.classic_membership import SyncRequest
from tailrace.model.errors import ErrorCode
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_FROM = first_version_with("SyncGroupRequest", "protocol_type")


def handle(
    request: Request, now_ms: int, *, groups: Groups, permissions: Permissions, replies: Replies
) -> SyncGroupResponse | None:
    body: SyncGroupRequest = request.body
    if request.version >= _PROTOCOL_FROM and (body.protocol_type is None or body.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    answer = PendingAnswer(replies, request)
    sync = SyncRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
        protocol_type=body.protocol_type,
        protocol=body.protocol_name,
        assignments={one.member_id: bytes(one.assignment) for one in body.assignments},
    )
    groups.write(
        body.group_id,
        lambda shard: shard.sync(sync, answer, now_ms),
        lambda _, __: None,
        lambda error, now_ms: answer(SyncGroupResponse(error_code=error.code), now_ms),
        now_ms,
    )
    return None
