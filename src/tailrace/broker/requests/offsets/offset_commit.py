"""OffsetCommit (key 8), versions 0–10.

Behaviour
    Notes how far a group has read, for a member of the group's generation, or for anybody as long as it has no members.
    Answered when it is durable. A partition that does not exist, or metadata that is too long, has an error of its own.
Version notes
    0   no generation and member; Kafka kept these offsets in ZooKeeper, here they are as those of version 1
    1   when it was committed, as the client says
    2   how long it is to be kept, until 4
    6   leader epochs
    7   static members
    9   GROUP_ID_NOT_FOUND for a generation of a group that is not there; before, ILLEGAL_GENERATION
    10  topic ids instead of names
"""

from __future__ import annotations

from tailrace.broker.coordination.groups import Groups
from tailrace.broker.handling.pending_answer import PendingAnswer
from tailrace.broker.replies import Replies
from tailrace.broker.requests.groups.group_topics import find_topic
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.coordinator.groups.group import Committer, PartitionCommit, TopicCommit
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.codegen.field_versions import OFFSET_TOPIC_IDS
from tailrace.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = OffsetCommitResponse.OffsetCommitResponsePartition


def handle(
    request: Request, now_ms: int, *, controller: Controller, groups: Groups, permissions: Permissions, replies: Replies
) -> OffsetCommitResponse | None:
    body: OffsetCommitRequest = request.body
    if not permissions.allows(request, Operation.READ, AclResource.GROUP, body.group_id):
        return _all_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    response = OffsetCommitResponse()
    commits: list[TopicCommit] = []
    places: list[list[_Partition]] = []  # where the coordinator's verdicts go
    for asked in body.topics:
        found = find_topic(
            request, asked.name, asked.topic_id, Operation.READ, controller=controller, permissions=permissions
        )
        by_id = request.version >= OFFSET_TOPIC_IDS
        told = _Topic(name="" if by_id else asked.name, topic_id=asked.topic_id if by_id else bytes(16))
        response.topics.append(told)
        wanted, place = [], []
        for one in asked.partitions:
            part = _Partition(partition_index=one.partition_index, error_code=found.error)
            told.partitions.append(part)
            if found.topic is None:
                continue
            if one.partition_index not in found.topic.partitions:
                part.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            wanted.append(
                PartitionCommit(
                    one.partition_index,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.committed_metadata,
                    one.commit_timestamp,
                )
            )
            place.append(part)
        if found.topic is not None and wanted:
            commits.append(TopicCommit(found.name, found.topic.id, wanted))
            places.append(place)
    if not commits:
        return response
    answer = PendingAnswer(replies, request)

    def finish(errors: list[list[ErrorCode]], now_ms: int) -> None:
        for place, codes in zip(places, errors, strict=True):
            for part, code in zip(place, codes, strict=True):
                part.error_code = code
        answer(response, now_ms)

    def refuse(error: KafkaError, now_ms: int) -> None:
        finish([[error.code] * len(place) for place in places], now_ms)

    committer = Committer(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch, request.version)
    groups.write(
        body.group_id,
        lambda shard: shard.commits.commit(
            body.group_id, committer, commits, now_ms, retention_ms=body.retention_time_ms
        ),
        finish,
        refuse,
        now_ms,
    )
    return None


def _all_refused(request: Request, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            _Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    _Partition(partition_index=one.partition_index, error_code=code) for one in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )
