"""AlterPartitionReassignments (key 45), versions 0–1.

Behaviour
    Moves replicas of partitions to other brokers, or cancels a reassignment (null). In a cluster of one node, only the
    existing assignment is accepted.
Version notes
    1   the client can forbid a change of the replication factor
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> AlterPartitionReassignmentsResponse:
    if not permissions.allows(request, Operation.ALTER, AclResource.CLUSTER, CLUSTER_NAME):
        return _denied(request.body)
    return local_controller.alter_partition_reassignments(request.body, now_ms)


def _denied(body: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """Return the error for the whole request and for each partition."""
    response, code = AlterPartitionReassignmentsResponse, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return response(
        error_code=code,
        error_message=REFUSED,
        responses=[
            response.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    response.ReassignablePartitionResponse(
                        partition_index=one.partition_index, error_code=code, error_message=REFUSED
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ],
    )
