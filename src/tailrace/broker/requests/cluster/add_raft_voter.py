"""AddRaftVoter (key 80), versions 0–1.

Behaviour
    Changes the voters of the metadata quorum. A node that is controller and broker in one refuses, as its quorum is
    itself; below Kafka's controllers the request is forwarded to them.
Version notes
    1   the request says whether to wait until the new voter is committed
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController


def handle(request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions) -> None:
    check_cluster(request, Operation.ALTER, permissions=permissions)
    local_controller.add_raft_voter(request.body)
