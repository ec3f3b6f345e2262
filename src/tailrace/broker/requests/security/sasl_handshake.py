"""SaslHandshake (key 17), versions 0–1.

Behaviour
    Agrees on a mechanism, on a listener where clients have to say who they are: `broker/security/guard.py` takes it
    before any other request. Here it arrives out of turn, and is refused.
Version notes
    0   the tokens that follow are frames of their own
    1   they come in SaslAuthenticate requests
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import SaslHandshakeResponse


def handle(request: Request, now_ms: int) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
