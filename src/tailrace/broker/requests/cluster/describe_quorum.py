"""DescribeQuorum (key 55), versions 0–2.

Behaviour
    Who leads the metadata log, and how far its voters and observers are. A node by itself is leader and only voter.
Version notes
    1   when a replica last fetched, and was last caught up
    2   directory ids, and where the voters listen
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
