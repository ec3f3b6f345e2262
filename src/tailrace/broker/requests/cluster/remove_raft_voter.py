"""RemoveRaftVoter (key 81), version 0.

Behaviour
    Removes a voter from the metadata quorum. A node that is its own controller refuses, because it is the only voter.
    Otherwise the request is forwarded to Kafka's controllers.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController


def handle(request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions) -> None:
    check_cluster(request, Operation.ALTER, permissions=permissions)
    local_controller.remove_raft_voter(request.body)
