"""ExpireDelegationToken (key 40), versions 1–2.

Behaviour
    Sets the expiry time of a token. A negative period deletes it at once. The token's owner and renewers may do this.
"""

from __future__ import annotations

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.broker.requests.security.token_requests import change_expiration
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import ExpireDelegationTokenResponse


def handle(
    request: Request,
    now_ms: int,
    *,
    config: BrokerConfig,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
) -> ExpireDelegationTokenResponse | None:
    def expire() -> int:
        assert local_controller is not None, "a broker that does not forward has a local controller"
        return local_controller.tokens.expire(request.body, request.context.principal, now_ms)

    return change_expiration(
        request, now_ms, ExpireDelegationTokenResponse(), expire, config=config, forwarding=forwarding
    )
