"""AssignReplicasToDirs (key 73), version 0.

Behaviour
    Records the log directories of a broker's replicas. A replica in a failed directory loses its leadership.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> AssignReplicasToDirsResponse:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    body: AssignReplicasToDirsRequest = request.body
    assignments = [
        (directory.id, topic.topic_id, one.partition_index)
        for directory in body.directories
        for topic in directory.topics
        for one in topic.partitions
    ]
    codes = iter(local_controller.brokers.assign_directories(body.broker_id, body.broker_epoch, assignments, now_ms))
    answer = AssignReplicasToDirsResponse
    return answer(
        directories=[
            answer.DirectoryData(
                id=directory.id,
                topics=[
                    answer.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            answer.PartitionData(partition_index=one.partition_index, error_code=next(codes))
                            for one in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in body.directories
        ]
    )
