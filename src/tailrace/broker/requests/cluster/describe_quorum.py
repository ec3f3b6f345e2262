"""DescribeQuorum (key 55), versions 0–2.

Behaviour
    Returns the leader of the metadata quorum and the progress of its voters and observers. A node that is its own
    controller is the leader and the only voter.
Version notes
    1   the times when a replica last fetched and was last caught up
    2   directory ids, and the addresses of the voters
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import DescribeQuorumResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> DescribeQuorumResponse:
    check_cluster(request, Operation.DESCRIBE, permissions=permissions)
    return local_controller.describe_quorum(request.body, request.version, now_ms)
