"""ElectLeaders (key 43), versions 0–2.

Behaviour
    Elects the preferred replica as leader of partitions, or any live replica in an unclean election. Null means all
    partitions; the response then only has partitions with a new leader or an error.
Version notes
    0   preferred replicas only
    1   the kind of election
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import REFUSED
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import ElectLeadersRequest, ElectLeadersResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> ElectLeadersResponse:
    if not permissions.allows(request, Operation.ALTER, AclResource.CLUSTER, CLUSTER_NAME):
        return _denied(request.body, request.version)
    return local_controller.elect_leaders(request.body, now_ms)


def _denied(body: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ElectLeadersResponse(
        error_code=code if version >= 1 else ErrorCode.NONE,
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersResponse.PartitionResult(partition_id=number, error_code=code, error_message=REFUSED)
                    for number in topic.partitions
                ],
            )
            for topic in body.topic_partitions or []
        ],
    )
