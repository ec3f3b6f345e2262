"""ListPartitionReassignments (key 46), version 0.

Behaviour
    The partitions, of those asked for or of all (null), whose replicas are on the move.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.security.authorizer import Operation
from tailrace.protocol.messages import ListPartitionReassignmentsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> ListPartitionReassignmentsResponse:
    check_cluster(broker, request, Operation.DESCRIBE)
    return broker.local_controller.list_partition_reassignments(request.body)
