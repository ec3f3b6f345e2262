"""RenewDelegationToken (key 39), versions 1–2.

Behaviour
    Lets a token live longer, up to its maximum lifetime. Its owner and its renewers may do so.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.security.token_requests import change_expiration
from tailrace.protocol.messages import RenewDelegationTokenResponse


def handle(broker: Broker, request: Request, now_ms: int) -> RenewDelegationTokenResponse | None:
    def renew() -> int:
        return broker.local_controller.tokens.renew(request.body, request.context.principal, now_ms)

    return change_expiration(broker, request, now_ms, RenewDelegationTokenResponse(), renew)
