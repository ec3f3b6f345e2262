"""ExpireDelegationToken (key 40), versions 1–2.

Behaviour
    Sets when a token expires; a negative period removes it at once. Its owner and its renewers may do so.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.token_requests import NO_TIME, check_connection
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import ExpireDelegationTokenResponse


def handle(broker: Broker, request: Request, now_ms: int) -> ExpireDelegationTokenResponse | None:
    try:
        check_connection(broker, request)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)
    if broker.forwarding is not None:
        broker.forwarding.forward(request, now_ms)
        return None
    expiry_ms = broker.local_controller.tokens.expire(request.body, request.context.principal, now_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
