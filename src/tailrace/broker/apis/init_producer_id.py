"""InitProducerId (key 22), versions 0–5.

Behaviour
    A producer id of its own for an idempotent producer, from blocks that the controller gives out.
Version notes
    3   a producer that lost its place may ask to go on with its id under a new epoch
Not implemented
    transactional ids: refused with COORDINATOR_NOT_AVAILABLE until there is a transaction coordinator
"""

from __future__ import annotations

from tailrace.broker.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import InitProducerIdRequest, InitProducerIdResponse


def handle(broker: Broker, request: Request, now_ms: int) -> InitProducerIdResponse:
    body: InitProducerIdRequest = request.body
    if body.transactional_id is not None:
        if not body.transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if not broker.allows(request, Operation.IDEMPOTENT_WRITE, AclResource.CLUSTER, CLUSTER_NAME):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (body.producer_id == -1) != (body.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    return InitProducerIdResponse(producer_id=broker.next_producer_id(now_ms), producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
