"""Rules that the requests about delegation tokens share: which connections may send them, and what rights they need."""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.model.errors import ErrorCode, KafkaError

NO_TIME = -1  # in a response without a token
_ANONYMOUS = "User:ANONYMOUS"


def check_connection(broker: Broker, request: Request) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED on connections without a login, or whose login was itself a token."""
    context = request.context
    protocols = {one.name: one.security_protocol for one in broker.config.listeners}
    protocol = protocols.get(context.listener, "PLAINTEXT")
    is_anonymous = protocol == "PLAINTEXT" or (protocol == "SSL" and context.principal == _ANONYMOUS)
    if is_anonymous or context.has_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
