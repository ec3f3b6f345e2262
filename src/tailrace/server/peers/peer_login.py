"""PeerLogin: authenticates a new connection to another node (SASL), without waiting for a response.

request = login.begin()
while request is not None:
    send it; request = login.take(response)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tailrace.client.errors import AuthenticationFailed, code_name
from tailrace.client.security.sasl import HANDSHAKE_AT_LEAST, exchange_of
from tailrace.client.security.security import Sasl
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.codegen.schema import Versions
from tailrace.protocol.headers import read_response_header
from tailrace.protocol.message import Message
from tailrace.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tailrace.protocol.registry import response_class

AUTHENTICATE_VERSION_MAX: Final = 2
SHARE_OF_SESSION: Final = 0.85  # after this part of a session's lifetime, a new connection replaces the old one

SESSION_MS_MIN: Final = 1_000  # even if the peer grants less, because each session costs a login


class PeerLogin:
    def __init__(self, sasl: Sasl, versions: Mapping[int, Versions]) -> None:
        theirs = versions.get(ApiKey.SASL_AUTHENTICATE)
        if theirs is None or ApiKey.SASL_HANDSHAKE not in versions:
            raise AuthenticationFailed("it does not support SASL; is the listener of another protocol?")
        self._sasl = sasl
        self._version = min(theirs.high, AUTHENTICATE_VERSION_MAX)
        self._exchange = exchange_of(sasl, may_wait=False)
        self._asked: tuple[int, int] = (ApiKey.SASL_HANDSHAKE, HANDSHAKE_AT_LEAST)
        self.lifetime_ms = 0  # lifetime of the session, 0: unlimited

    def begin(self) -> tuple[Message, int]:
        return SaslHandshakeRequest(mechanism=self._sasl.mechanism), HANDSHAKE_AT_LEAST

    def take(self, frame: memoryview) -> tuple[Message, int] | None:
        """Return the next request and its version, or None at the end. Raise AuthenticationFailed if the peer
        refuses."""
        key, version = self._asked
        answer: Any = response_class(key).decode(frame, version, read_response_header(key, version, frame)[1])
        if key == ApiKey.SASL_HANDSHAKE:
            if answer.error_code:
                offered = ", ".join(answer.mechanisms) or "none"
                raise AuthenticationFailed(f"it does not support {self._sasl.mechanism}; it supports {offered}")
            return self._authenticate(next(self._exchange))
        if answer.error_code:
            why = answer.error_message or code_name(answer.error_code)
            raise AuthenticationFailed(f"it refused {self._sasl.username!r}: {why}")
        try:
            words = self._exchange.send(bytes(answer.auth_bytes))
        except StopIteration:
            if answer.session_lifetime_ms > 0:
                self.lifetime_ms = max(int(answer.session_lifetime_ms * SHARE_OF_SESSION), SESSION_MS_MIN)
            return None
        return self._authenticate(words)

    def _authenticate(self, words: bytes) -> tuple[Message, int]:
        self._asked = (ApiKey.SASL_AUTHENTICATE, self._version)
        return SaslAuthenticateRequest(auth_bytes=words), self._version
