"""ConsumerGroupHeartbeat (key 68), versions 0–1.

Behaviour
    A member of a consumer group sends only this request (KIP-848). It joins with epoch 0, reports its changes and its
    owned partitions, and gets its epoch and its assignment. It leaves with epoch -1, or with -2 if it will be back.
Version notes
    1   regular expressions; member ids that the client creates
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import visibility_of
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Authorizer, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.consumer.consumer_heartbeat import ConsumerHeartbeat
from tailrace.coordinator.groups.epoch.epoch_member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

_OWN_MEMBER_ID_FROM = 1


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, groups: Groups, permissions: Permissions, replies: Replies
) -> ConsumerGroupHeartbeatResponse | None:
    body: ConsumerGroupHeartbeatRequest = request.body
    if not groups.is_enabled("consumer"):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for topic in body.subscribed_topic_names or ():
        if not permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    _check(body, request.version, groups.assignors)
    answer = PendingAnswer(replies, request)
    beat = ConsumerHeartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        client_id=request.client_id or "",
        client_host=f"/{request.context.client_host}",
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topic_names=None if body.subscribed_topic_names is None else frozenset(body.subscribed_topic_names),
        topic_pattern=body.subscribed_topic_regex,
        server_assignor=body.server_assignor,
        owned=(
            None
            if body.topic_partitions is None
            else {bytes(topic.topic_id): tuple(topic.partitions) for topic in body.topic_partitions}
        ),
        is_visible=visibility_of(request, authorizer=authorizer),
    )

    def refuse(error: KafkaError, now_ms: int) -> None:
        message = error.args[0] if error.args else None
        answer(ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=message), now_ms)

    groups.write(body.group_id, lambda shard: shard.consumer_heartbeat(beat, now_ms), answer, refuse, now_ms)
    return None


def _check(body: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]) -> None:
    """Raise KafkaError for a missing or invalid field."""
    epoch = body.member_epoch
    if (version >= _OWN_MEMBER_ID_FROM or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH) and not body.member_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    for name, text in (("GroupId", body.group_id), ("InstanceId", body.instance_id), ("RackId", body.rack_id)):
        if text is not None and not text.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if epoch == JOIN_EPOCH:
        if body.rebalance_timeout_ms == -1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
        if body.topic_partitions is None or body.topic_partitions:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            )
    elif epoch == LEAVE_STATIC_EPOCH:
        if body.instance_id is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if body.server_assignor is not None and body.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {body.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )
