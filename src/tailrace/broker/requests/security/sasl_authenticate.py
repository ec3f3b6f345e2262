"""SaslAuthenticate (key 36), versions 0–2.

Behaviour
    A token of the mechanism that SaslHandshake has agreed on; `broker/security/guard.py` takes it. Here it arrives out
    of turn, and is refused.
Version notes
    1   says how long the session lasts
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import SaslAuthenticateResponse

_TOLD = "SaslAuthenticate request received after successful authentication"


def handle(request: Request, now_ms: int) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOLD)
