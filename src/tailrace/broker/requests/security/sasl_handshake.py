"""SaslHandshake (key 17), versions 0–1.

Behaviour
    Selects the SASL mechanism. `broker/security/guard.py` handles it on listeners with SASL, before any other request.
    A request that arrives here comes in the wrong state and is refused.
Version notes
    0   the SASL tokens follow as bare frames
    1   the SASL tokens follow in SaslAuthenticate requests
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import SaslHandshakeResponse


def handle(request: Request, now_ms: int) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
