"""AlterPartition (key 56), versions 2–3.

Behaviour
    Decides on the in-sync replicas that a leader proposes.
Version notes
    3   the epoch of each proposed broker (KIP-903)
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import AlterPartitionResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> AlterPartitionResponse:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    return local_controller.brokers.alter_partition(request.body, request.version, now_ms)
