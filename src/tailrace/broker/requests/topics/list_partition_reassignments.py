"""ListPartitionReassignments (key 46), version 0.

Behaviour
    Returns the partitions that are being reassigned, among the requested ones or all (null).
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import ListPartitionReassignmentsResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> ListPartitionReassignmentsResponse:
    check_cluster(request, Operation.DESCRIBE, permissions=permissions)
    return local_controller.list_partition_reassignments(request.body)
