"""Common code of the requests about delegation tokens: the check of the connection, and changes of the expiry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ExpireDelegationTokenResponse, RenewDelegationTokenResponse

Changed = TypeVar("Changed", ExpireDelegationTokenResponse, RenewDelegationTokenResponse)

NO_TIME = -1  # the timestamp in a response without a token
_ANONYMOUS = "User:ANONYMOUS"


def check_connection(request: Request, *, config: BrokerConfig) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if the client has not logged in, or has logged in with a token."""
    context = request.context
    protocols = {one.name: one.security_protocol for one in config.listeners}
    protocol = protocols.get(context.listener, "PLAINTEXT")
    is_anonymous = protocol == "PLAINTEXT" or (protocol == "SSL" and context.principal == _ANONYMOUS)
    if is_anonymous or context.has_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def change_expiration(
    request: Request,
    now_ms: int,
    response: Changed,
    change: Callable[[], int],
    *,
    config: BrokerConfig,
    forwarding: Forwarding | None,
) -> Changed | None:
    """Handle a request that changes the expiry of a token. Forward it if the controllers are other nodes."""
    try:
        check_connection(request, config=config)
    except KafkaError as error:
        response.error_code, response.expiry_timestamp_ms = error.code, NO_TIME
        return response
    if forwarding is not None:
        forwarding.forward(request, now_ms)
        return None
    response.expiry_timestamp_ms = change()
    return response
