"""UnregisterBroker (key 64), version 0.

Behaviour
    Makes the cluster forget a broker that will not come back. One that is alive registers itself again at once.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.security.authorizer import Operation
from tailrace.protocol.messages import UnregisterBrokerResponse


def handle(broker: Broker, request: Request, now_ms: int) -> UnregisterBrokerResponse:
    check_cluster(broker, request, Operation.ALTER)
    broker.local_controller.unregister_broker(request.body.broker_id, now_ms)
    return UnregisterBrokerResponse(error_message=None)
