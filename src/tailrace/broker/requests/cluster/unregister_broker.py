"""UnregisterBroker (key 64), version 0.

Behaviour
    Removes the registration of a broker that was shut down for good. A running broker registers again at once.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import UnregisterBrokerResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> UnregisterBrokerResponse:
    check_cluster(request, Operation.ALTER, permissions=permissions)
    local_controller.unregister_broker(request.body.broker_id, now_ms)
    return UnregisterBrokerResponse(error_message=None)
