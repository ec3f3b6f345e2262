"""AllocateProducerIds (key 67), version 0.

Behaviour
    Allocates a block of producer ids to a broker. No block is allocated twice.
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import AllocateProducerIdsResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> AllocateProducerIdsResponse:
    check_cluster(request, Operation.CLUSTER_ACTION, permissions=permissions)
    body = request.body
    block = local_controller.brokers.allocate_producer_ids(body.broker_id, body.broker_epoch, now_ms)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
