"""DeleteRecords (key 21), versions 0–2.

Behaviour
    Moves a partition's log start offset up to the given offset, or to the high watermark for -1. The response has the
    low watermark. It is sent when every live replica has moved its log start offset, or after the timeout.
"""

from __future__ import annotations

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from tailrace.replication.delayed_delete_records import DelayedDeleteRecords, DeletedPartition, delete_on_leader
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory


def handle(
    request: Request,
    now_ms: int,
    *,
    controller: Controller,
    partitions: HostedPartitions,
    permissions: Permissions,
    purgatory: Purgatory,
    replies: Replies,
) -> DeleteRecordsResponse | None:
    body: DeleteRecordsRequest = request.body
    topics = [
        (
            topic.name,
            _delete(request, topic, now_ms, controller=controller, partitions=partitions, permissions=permissions),
        )
        for topic in body.topics
    ]
    parts = [part for _, deleted in topics for part in deleted]
    if all(part.is_done for part in parts):
        return _response(topics)

    waiting = request.without_body()

    def answer(_: DelayedDeleteRecords, now_ms: int) -> None:
        replies.answer(waiting, _response(topics), now_ms)

    operation = DelayedDeleteRecords(parts, partitions, now_ms + max(body.timeout_ms, 0), answer)
    if not purgatory.try_complete_or_watch(operation, operation.keys(), now_ms):
        replies.parked(waiting.context, operation, waiting.client_id)
    return None


def _delete(
    request: Request,
    topic: DeleteRecordsRequest.DeleteRecordsTopic,
    now_ms: int,
    *,
    controller: Controller,
    partitions: HostedPartitions,
    permissions: Permissions,
) -> list[DeletedPartition]:
    error = None
    if not permissions.allows(request, Operation.DELETE, AclResource.TOPIC, topic.name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif topic.name not in controller.image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    deleted = []
    for asked in {one.partition_index: one for one in topic.partitions}.values():  # the last of repeated ones
        key = TopicPartition(topic.name, asked.partition_index)
        if error is None:
            deleted.append(delete_on_leader(partitions, key, asked.offset, now_ms))
        else:
            part = DeletedPartition(key)
            part.refuse(error)
            deleted.append(part)
    return deleted


def _response(topics: list[tuple[str, list[DeletedPartition]]]) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(name=name, partitions=[part.response for part in deleted])
            for name, deleted in topics
        ]
    )
