"""ShareGroupHeartbeat (key 76), version 1.

Behaviour
    A member of a share group sends only this request to its group coordinator (KIP-932). It joins with epoch 0, reports
    its changes, gets its epoch and its assignment, and leaves with epoch -1. Partitions are assigned when their state
    is initialized. The first heartbeat that subscribes to a topic starts the initialization.
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_group_state import begin_state, check_share_groups
from tailrace.broker.shares.shares import Shares
from tailrace.coordinator.groups.epoch.epoch_member import JOIN_EPOCH, LEAVE_EPOCH
from tailrace.coordinator.groups.share.share_heartbeat import ShareHeartbeat, ShareHeartbeatResult
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_MEMBER_ID_MAX = 36  # the length of a UUID


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
    shares: Shares,
) -> ShareGroupHeartbeatResponse | None:
    body: ShareGroupHeartbeatRequest = request.body
    check_share_groups(controller=controller)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not body.member_id or len(body.member_id) > _MEMBER_ID_MAX:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    for topic in body.subscribed_topic_names or ():
        if not permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    _check(body)
    answer = PendingAnswer(replies, request)
    beat = ShareHeartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        client_id=request.client_id or "",
        client_host=f"/{request.context.client_host}",
        rack_id=body.rack_id,
        topic_names=None if body.subscribed_topic_names is None else frozenset(body.subscribed_topic_names),
    )

    def accept(result: ShareHeartbeatResult, now_ms: int) -> None:
        answer(result.response, now_ms)
        if result.to_initialize is not None:
            begin_state(result.to_initialize, lambda errors, now_ms: None, now_ms, groups=groups, shares=shares)

    def refuse(error: KafkaError, now_ms: int) -> None:
        answer(ShareGroupHeartbeatResponse(error_code=error.code, error_message=str(error)), now_ms)

    groups.write(body.group_id, lambda shard: shard.shares.heartbeat(beat, now_ms), accept, refuse, now_ms)
    return None


def _check(body: ShareGroupHeartbeatRequest) -> None:
    """Raise KafkaError for a missing or invalid field."""
    for name, text in (("MemberId", body.member_id), ("GroupId", body.group_id), ("RackId", body.rack_id)):
        if text is not None and not text.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if body.member_epoch == JOIN_EPOCH and not body.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if body.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
