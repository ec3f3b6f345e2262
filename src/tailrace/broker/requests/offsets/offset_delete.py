"""OffsetDelete (key 47), version 0.

Behaviour
    Deletes committed offsets of topics to which no member of the group subscribes.
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import find_topic
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

_Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
_Partition = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(
    request: Request, now_ms: int, *, controller: Controller, groups: Groups, permissions: Permissions, replies: Replies
) -> OffsetDeleteResponse | None:
    body: OffsetDeleteRequest = request.body
    if not permissions.allows(request, Operation.DELETE, AclResource.GROUP, body.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    response = OffsetDeleteResponse()
    wanted: list[tuple[str, list[int]]] = []
    known: list[list[_Partition]] = []  # the partitions of `wanted` in the response
    for asked in body.topics:
        found = find_topic(request, asked.name, Operation.READ, controller=controller, permissions=permissions)
        topic = _Topic(name=asked.name)
        response.topics.append(topic)
        known_here = []
        for one in asked.partitions:
            part = _Partition(partition_index=one.partition_index, error_code=found.error)
            topic.partitions.append(part)
            if found.topic is not None and one.partition_index in found.topic.partitions:
                known_here.append(part)
            elif found.topic is not None:
                part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if known_here:
            wanted.append((asked.name, [part.partition_index for part in known_here]))
            known.append(known_here)
    if not body.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    answer = PendingAnswer(replies, request)

    def finish(errors: list[list[ErrorCode]], now_ms: int) -> None:
        for parts, codes in zip(known, errors, strict=True):
            for part, code in zip(parts, codes, strict=True):
                part.error_code = code
        answer(response, now_ms)

    groups.write(
        body.group_id,
        lambda shard: shard.commits.delete(body.group_id, wanted),
        finish,
        lambda error, now_ms: answer(OffsetDeleteResponse(error_code=error.code), now_ms),
        now_ms,
    )
    return None
