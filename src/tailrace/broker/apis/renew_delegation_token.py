"""RenewDelegationToken (key 39), versions 1–2.

Behaviour
    Lets a token live longer, up to its maximum lifetime. Its owner and its renewers may do so.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.token_requests import NO_TIME, check_connection
from tailrace.model.errors import KafkaError
from tailrace.protocol.messages import RenewDelegationTokenResponse


def handle(broker: Broker, request: Request, now_ms: int) -> RenewDelegationTokenResponse | None:
    try:
        check_connection(broker, request)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)
    if broker.forwarding is not None:
        broker.forwarding.forward(request, now_ms)
        return None
    expiry_ms = broker.local_controller.tokens.renew(request.body, request.context.principal, now_ms)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
