"""ControllerRegistration (key 70), version 0.

Behaviour
    Records the addresses and the supported features of a controller, which observers of the quorum send as well.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import ControllerRegistrationResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> ControllerRegistrationResponse:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    local_controller.brokers.register_controller(request.body, now_ms)
    return ControllerRegistrationResponse(error_message=None)
