"""ExpireDelegationToken (key 40), versions 1–2.

Behaviour
    Sets when a token expires; a negative period removes it at once. Its owner and its renewers may do so.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.security.token_requests import change_expiration
from tailrace.protocol.messages import ExpireDelegationTokenResponse


def handle(broker: Broker, request: Request, now_ms: int) -> ExpireDelegationTokenResponse | None:
    def expire() -> int:
        return broker.local_controller.tokens.expire(request.body, request.context.principal, now_ms)

    return change_expiration(broker, request, now_ms, ExpireDelegationTokenResponse(), expire)
