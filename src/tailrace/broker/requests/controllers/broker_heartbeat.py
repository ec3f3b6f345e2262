"""BrokerHeartbeat (key 63), versions 0–2.

Behaviour
    Keeps a broker's session alive. The broker may ask to be unfenced, fenced, or shut down, and reports failed and
    cordoned log directories.
Version notes
    1   failed log directories
    2   cordoned log directories
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import BrokerHeartbeatResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> BrokerHeartbeatResponse:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    return local_controller.brokers.heartbeat(request.body, now_ms)
