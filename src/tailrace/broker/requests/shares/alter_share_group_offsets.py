"""AlterShareGroupOffsets (key 91), version 0.

Behaviour
    Sets the start offsets of a share group without members. An unknown group is created.
"""

from __future__ import annotations

from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_group_state import Errors, begin_state, check_share_groups
from tailrace.broker.shares.shares import Shares
from tailrace.coordinator.groups.share.share_heartbeat import Initialization
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

_Topic: TypeAlias = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Partition: TypeAlias = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
    shares: Shares,
) -> AlterShareGroupOffsetsResponse | None:
    body: AlterShareGroupOffsetsRequest = request.body
    group_id = body.group_id
    check_share_groups(controller=controller)
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    topics = {topic.topic_name: topic for topic in body.topics}
    results = [_checked(request, topic, controller=controller, permissions=permissions) for topic in topics.values()]
    wanted = {
        topic.topic_name: {one.partition_index: one.start_offset for one in topic.partitions}
        for topic, known in zip(topics.values(), results, strict=True)
        if known.topic_id != bytes(16)
        and permissions.allows(request, Operation.READ, AclResource.TOPIC, topic.topic_name)
    }
    answer = PendingAnswer(replies, request)

    def begin(wanted: Initialization, now_ms: int) -> None:
        begin_state(wanted, finish, now_ms, try_again_soon=False, groups=groups, shares=shares)

    def finish(errors: Errors, now_ms: int) -> None:
        for topic in results:
            for one in topic.partitions:
                error = errors.get((topic.topic_id, one.partition_index))
                if error is not None:
                    one.error_code, one.error_message = error.code, str(error)
        answer(AlterShareGroupOffsetsResponse(responses=results), now_ms)

    def refuse(error: KafkaError, now_ms: int) -> None:
        answer(AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error)), now_ms)

    groups.write(group_id, lambda shard: shard.share_offsets.alter(group_id, wanted, now_ms), begin, refuse, now_ms)
    return None


def _checked(
    request: Request,
    asked: AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic,
    *,
    controller: Controller,
    permissions: Permissions,
) -> _Topic:
    """Return the result of a topic before its state is changed: no error, or why the topic is refused."""
    known = controller.image.topics.get(asked.topic_name)
    code, count = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0 if known is None else len(known.partitions)
    if not permissions.allows(request, Operation.READ, AclResource.TOPIC, asked.topic_name):
        code, count = ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0
    return _Topic(
        topic_name=asked.topic_name,
        topic_id=bytes(16) if known is None else known.id,
        partitions=[
            _Partition(partition_index=one.partition_index)
            if one.partition_index < count
            else _Partition(partition_index=one.partition_index, error_code=code, error_message=code.name)
            for one in asked.partitions
        ],
    )
