"""FetchSnapshot (key 59), versions 0–1.

Behaviour
    Returns a piece of a snapshot of the metadata log.
Version notes
    1   the directory of the replica; the address of the leader
"""

from __future__ import annotations

from tailrace.broker.cluster.observer_fetch import leader_endpoints
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.log.disk.file_names import CLUSTER_METADATA_TOPIC
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse

_ENDPOINTS_FROM = 1


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> FetchSnapshotResponse:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    body: FetchSnapshotRequest = request.body
    served = local_controller.served_log
    if body.cluster_id not in (None, served.cluster_id):
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"the request has the cluster id {body.cluster_id}; this cluster has {served.cluster_id}",
        )
    if len(body.topics) != 1 or len(body.topics[0].partitions) != 1 or body.topics[0].name != CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a controller listener serves only snapshots of the metadata")
    answer = served.snapshot_piece(body.topics[0].partitions[0], body.max_bytes)
    topic = FetchSnapshotResponse.TopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=[answer])
    response = FetchSnapshotResponse(topics=[topic])
    if request.version >= _ENDPOINTS_FROM:
        response.node_endpoints = leader_endpoints(
            FetchSnapshotResponse.NodeEndpoint, local_controller, request.context.listener
        )
    return response
