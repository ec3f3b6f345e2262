"""LeaveGroup (key 13), versions 0–5.

Behaviour
    Members leave a classic group, which then rebalances. An administrator can remove static members by instance id.
Version notes
    3   several members and static members, each with its own error; before, one error for the request
    5   the reason of leaving
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.classic.classic_membership import LeavingMember
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

_SEVERAL_FROM = first_version_with("LeaveGroupRequest", "members")


def handle(
    request: Request, now_ms: int, *, groups: Groups, permissions: Permissions, replies: Replies
) -> LeaveGroupResponse | None:
    body: LeaveGroupRequest = request.body
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if request.version >= _SEVERAL_FROM:
        leaving = [
            LeavingMember(one.member_id, one.group_instance_id, one.reason or "not provided") for one in body.members
        ]
    else:
        leaving = [LeavingMember(body.member_id, None, "not provided")]
    answer_with = PendingAnswer(replies, request)
    version = request.version

    def answer(response: LeaveGroupResponse, now_ms: int) -> None:
        if version < _SEVERAL_FROM and response.members:
            response = LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
        answer_with(response, now_ms)

    def refuse(error: KafkaError, now_ms: int) -> None:
        response = LeaveGroupResponse(error_code=error.code)
        if error.code is ErrorCode.UNKNOWN_MEMBER_ID:  # the group does not exist
            response = LeaveGroupResponse(
                members=[
                    LeaveGroupResponse.MemberResponse(
                        member_id=one.member_id, group_instance_id=one.instance_id, error_code=error.code
                    )
                    for one in leaving
                ]
            )
        answer(response, now_ms)

    groups.write(body.group_id, lambda shard: shard.leave(body.group_id, leaving, now_ms), answer, refuse, now_ms)
    return None
