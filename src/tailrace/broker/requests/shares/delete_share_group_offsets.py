"""DeleteShareGroupOffsets (key 92), version 0.

Behaviour
    Deletes the state of topics in a share group without members.
"""

from __future__ import annotations

from typing import TypeAlias

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.shares.share_group_state import Errors, check_share_groups, delete_state
from tailrace.broker.shares.shares import Shares
from tailrace.coordinator.groups.share.share_offsets import Deletion
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse

_Topic: TypeAlias = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    groups: Groups,
    permissions: Permissions,
    replies: Replies,
    shares: Shares,
) -> DeleteShareGroupOffsetsResponse | None:
    body: DeleteShareGroupOffsetsRequest = request.body
    group_id = body.group_id
    check_share_groups(controller=controller)
    if not permissions.allows(request, Operation.DELETE, AclResource.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    names = dict.fromkeys(topic.topic_name for topic in body.topics)
    allowed = [name for name in names if permissions.allows(request, Operation.READ, AclResource.TOPIC, name)]
    results = [_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in names if name not in allowed]
    answer = PendingAnswer(replies, request)

    def refuse(error: KafkaError, now_ms: int) -> None:
        answer(DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error)), now_ms)

    def delete(deletion: Deletion, now_ms: int) -> None:
        topics, by_id = controller.image.topics, controller.image.topics_by_id
        for name in deletion.unknown:
            results.append(_refused(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            if name in topics:
                results[-1].error_message = "There is no offset information to delete."
        known = {topic: by_id[topic].name for topic in deletion.partitions}

        def finish(errors: Errors, now_ms: int) -> None:
            failed = {topic: error.code for (topic, _), error in errors.items()}
            results.extend(_refused(known[topic], code, topic) for topic, code in failed.items())
            done = [topic for topic in known if topic not in failed]
            results.extend(_Topic(topic_name=known[topic], topic_id=topic) for topic in done)
            if not done:
                answer(DeleteShareGroupOffsetsResponse(responses=results), now_ms)
                return
            groups.write(
                group_id,
                lambda shard: shard.share_offsets.deleted(group_id, done, now_ms),
                lambda _, now_ms: answer(DeleteShareGroupOffsetsResponse(responses=results), now_ms),
                refuse,
                now_ms,
            )

        delete_state(group_id, deletion.partitions, finish, now_ms, shares=shares)

    groups.write(group_id, lambda shard: shard.share_offsets.delete(group_id, allowed, now_ms), delete, refuse, now_ms)
    return None


def _refused(name: str, code: ErrorCode, topic_id: bytes = bytes(16)) -> _Topic:
    return _Topic(topic_name=name, topic_id=topic_id, error_code=code, error_message=code.name)
