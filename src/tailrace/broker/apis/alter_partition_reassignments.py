"""AlterPartitionReassignments (key 45), versions 0–1.

Behaviour
    Moves the replicas of partitions to other brokers, or (null) takes a move back. On one node there is only one
    place where they can be: what is asked for is either so already or refused.
Version notes
    1   the number of replicas can be made to stay the same
"""

from __future__ import annotations

from tailrace.broker.authorizer import Operation
from tailrace.broker.broker import Broker
from tailrace.broker.cluster_authorization import check_cluster
from tailrace.broker.request_context import Request
from tailrace.protocol.messages import AlterPartitionReassignmentsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> AlterPartitionReassignmentsResponse:
    check_cluster(broker, request, Operation.ALTER)
    return broker.local_controller.alter_partition_reassignments(request.body, now_ms)
