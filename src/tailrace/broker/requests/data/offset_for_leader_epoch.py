"""OffsetForLeaderEpoch (key 23), versions 0–4.

Behaviour
    Returns the end offset of a leader epoch in this log. Consumers and followers use it to find where their logs
    diverge from the leader's.
Version notes
    1   the epoch that the end offset belongs to
    2   the client's current epoch, for fencing
    3   replica id; a consumer may ask a follower
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from tailrace.replication.hosted_partitions import HostedPartitions

_DEBUGGER = -2
_NO_EPOCH = -1
End = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(
    request: Request, now_ms: int, *, partitions: HostedPartitions, permissions: Permissions
) -> OffsetForLeaderEpochResponse:
    body: OffsetForLeaderEpochRequest = request.body
    is_replica = permissions.allows(request, Operation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _answer(
                        request,
                        TopicPartition(topic.topic, asked.partition),
                        asked,
                        is_replica or permissions.allows(request, Operation.DESCRIBE, AclResource.TOPIC, topic.topic),
                        partitions=partitions,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _answer(
    request: Request,
    key: TopicPartition,
    asked: OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    allowed: bool,
    *,
    partitions: HostedPartitions,
) -> End:
    answer = End(partition=key.partition)
    try:
        if not allowed:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = partitions.find(key)
        if asked.current_leader_epoch < _NO_EPOCH:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        end = partition.end_of_epoch(
            asked.leader_epoch,
            current_leader_epoch=asked.current_leader_epoch,
            leader_only=request.body.replica_id != _DEBUGGER,
        )
    except KafkaError as error:
        answer.error_code = error.code
    else:
        answer.leader_epoch, answer.end_offset = end
    return answer
