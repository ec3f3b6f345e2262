"""BrokerRegistration (key 62), versions 0–4.

Behaviour
    Registers a broker, fenced, under a new epoch. It is refused while another process with its id has a session, and
    if the broker does not support a finalized feature level.
Version notes
    2   log directories
    3   the epoch of the last clean stop
    4   features whose levels start at 0
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.steps import Steps
from tailrace.protocol.messages import BrokerRegistrationResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> Steps[BrokerRegistrationResponse]:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    epoch = yield from local_controller.brokers.register(request.body, now_ms)
    return BrokerRegistrationResponse(broker_epoch=epoch)
