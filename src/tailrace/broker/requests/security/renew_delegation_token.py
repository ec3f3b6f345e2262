"""RenewDelegationToken (key 39), versions 1–2.

Behaviour
    Extends the lifetime of a token, up to its maximum. The token's owner and renewers may do this.
"""

from __future__ import annotations

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.token_requests import change_expiration
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import RenewDelegationTokenResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    config: BrokerConfig,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
) -> RenewDelegationTokenResponse | None:
    def renew() -> int:
        assert local_controller is not None, "a broker that does not forward has a local controller"
        return local_controller.tokens.renew(request.body, request.context.principal, now_ms)

    return change_expiration(
        request, now_ms, RenewDelegationTokenResponse(), renew, config=config, forwarding=forwarding
    )
