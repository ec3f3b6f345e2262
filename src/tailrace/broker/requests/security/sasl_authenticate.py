"""SaslAuthenticate (key 36), versions 0–2.

Behaviour
    Carries a token of the SASL mechanism. `broker/security/guard.py` handles it during the authentication. A request
    that arrives here comes in the wrong state and is refused.
Version notes
    1   the lifetime of the session
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import SaslAuthenticateResponse

_MESSAGE = "SaslAuthenticate request received after successful authentication"


def handle(request: Request, now_ms: int) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_MESSAGE)
