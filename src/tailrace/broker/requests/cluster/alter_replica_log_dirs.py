"""AlterReplicaLogDirs (key 34), versions 0–2.

Behaviour
    Moves partitions to other log directories of this broker. The response does not wait for the copying.
    DescribeLogDirs reports its progress, with the copy as a future replica. A request with another directory cancels
    the running move. A partition that has no log yet gets an error
    (REPLICA_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION). Its log is nevertheless created in the requested directory
    later.
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.storage.directory_moves import DirectoryMoves
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


def handle(
    request: Request, now_ms: int, *, moves: DirectoryMoves, permissions: Permissions
) -> AlterReplicaLogDirsResponse:
    body: AlterReplicaLogDirsRequest = request.body
    places = {
        TopicPartition(topic.name, number): one.path
        for one in body.dirs
        for topic in one.topics
        for number in topic.partitions
    }
    is_allowed = permissions.allows(request, Operation.ALTER, AclResource.CLUSTER, CLUSTER_NAME)
    topics: dict[str, Topic] = {}
    for key, path in places.items():
        error = moves.request_move(key, path, now_ms) if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        topic = topics.setdefault(key.topic, Topic(topic_name=key.topic))
        topic.partitions.append(Partition(partition_index=key.partition, error_code=error))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
