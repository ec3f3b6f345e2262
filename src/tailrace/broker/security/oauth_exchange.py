"""OauthExchange: the broker's side of SASL/OAUTHBEARER (RFC 7628).

    valid token    broker: empty challenge; the client is authenticated
    other token    broker: {"status":"invalid_token"}, client: 0x01; the authentication fails with that text

If the token's key is not known yet, `evaluate` raises `KeysAwaited`. `resume` decides after the keys are fetched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from tailrace.broker.security.bearer_tokens import TokenRefused
from tailrace.broker.security.key_cache import HELD_MS_MAX, KeyCache
from tailrace.broker.security.sasl_exchanges import AuthenticationRefused
from tailrace.broker.security.token_credentials import TokenLogin
from tailrace.broker.security.token_validators import TokenValidator
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.model.security.oauthbearer import REFUSAL_SEEN, ClientMessage, MalformedMessage, read_message
from tailrace.waiting.purgatory import DelayedOperation

# Calls a step of an exchange and sends its result, or the error that it raises.
Answer: TypeAlias = Callable[[Callable[[], bytes], int], None]


class OauthExchange:
    token: TokenLogin | None = None  # OAUTHBEARER uses no delegation tokens

    def __init__(self, validator: TokenValidator, log: LimitedLog) -> None:
        self._validator = validator
        self._log = log
        self._message: ClientMessage | None = None
        self._error: str | None = None  # the sent error, which the client has to acknowledge
        self.user: str | None = None
        self.expires_ms: int | None = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        if token == REFUSAL_SEEN and self._error is not None:
            raise AuthenticationRefused(self._error)
        self._error = None
        try:
            self._message = read_message(token)
        except MalformedMessage as error:
            self._log.write(logging.INFO, "message", now_ms, "OAUTHBEARER message refused", error=error)
            raise AuthenticationRefused from None
        return self._decide(self._message, now_ms, may_wait=True)

    def resume(self, now_ms: int) -> bytes:
        """Decide about the waiting token with the current keys."""
        assert self._message is not None
        return self._decide(self._message, now_ms, may_wait=False)

    def _decide(self, message: ClientMessage, now_ms: int, *, may_wait: bool) -> bytes:
        try:
            accepted = self._validator.validate(message.token, now_ms, may_wait=may_wait)
        except TokenRefused as refused:
            self._log.write(logging.INFO, "token", now_ms, "token refused", error=str(refused)[:200])
            scope = "" if refused.scope is None else f', "scope":"{refused.scope}"'
            self._error = f'{{"status":"{refused.status}"{scope}}}'
            return self._error.encode()
        if message.authorization_id and message.authorization_id != accepted.principal:
            raise AuthenticationRefused(
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) that is "
                f"different from the token's principal name ({accepted.principal})"
            )
        self.user = accepted.principal
        self.expires_ms = accepted.expires_ms
        return b""


class HeldToken(DelayedOperation):
    """A token that waits until the keys of the identity provider are fetched."""

    __slots__ = ("_answer", "_cache", "_exchange", "_fetches")

    def __init__(self, cache: KeyCache, exchange: OauthExchange, answer: Answer, now_ms: int) -> None:
        super().__init__(now_ms + HELD_MS_MAX)
        self._cache = cache
        self._fetches = cache.fetches
        self._exchange = exchange
        self._answer = answer

    def try_complete(self, now_ms: int) -> bool:
        if self._cache.fetches == self._fetches:
            return False
        self.expire(now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._answer(lambda: self._exchange.resume(now_ms), now_ms)
