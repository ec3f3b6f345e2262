"""TokenLogin: the token of a client for SASL/OAUTHBEARER, cached and replaced before it expires.

    token()        return the token; retrieve one if there is none, or if a new one is due
    current()      return the current token without waiting; None if it has expired
    keep_fresh()   start a thread that retrieves each next token in time, so that `current` always has one

All connections with the same settings share one login (`login_of`). A token is replaced after `window_factor` of its
lifetime. If that fails, the old token is used until it expires.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from tailrace.client.errors import AuthenticationFailed, ClientError
from tailrace.client.security.oauth_settings import OauthLogin
from tailrace.client.security.token_retrieval import retrieve
from tailrace.model.log_fields import fields
from tailrace.model.security.jwt import CLAIMS_CHARS_MAX, MalformedToken, decode_part, split_token

RETRY_S_MAX: Final = 10.0  # longest pause between two failed retrievals of the thread
_log = logging.getLogger(__name__)


class _Token(NamedTuple):
    text: str
    issued_s: float
    expires_s: float
    due_s: float  # time to retrieve the next one


class TokenLogin:
    def __init__(
        self,
        settings: OauthLogin,
        get: Callable[[OauthLogin], str] = retrieve,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._get = get
        self._clock_s = clock_s
        self._lock = threading.Lock()  # held while a thread retrieves a token
        self._token: _Token | None = None
        self._keepers = 0
        self._wakes = threading.Event()
        self.failure = "it was not retrieved yet"  # the reason why there is no token

    def token(self) -> str:
        """Return a valid token, or raise ClientError.

        While another thread replaces a valid token, the old one is returned without waiting.
        """
        text = self.current()
        if text is not None and (self._keepers or self._lock.locked()):
            return text
        with self._lock:
            token = self._token
            if token is None or self._clock_s() >= token.due_s:
                try:
                    token = self._retrieve()
                except ClientError:
                    if token is None or self._clock_s() >= token.expires_s:
                        raise
            return token.text

    def current(self) -> str | None:
        token = self._token
        return token.text if token is not None and self._clock_s() < token.expires_s else None

    def refused(self, text: str) -> None:
        """Mark a token that a broker refused for replacement, unless it is newer than min_period_s."""
        token = self._token
        if token is not None and token.text == text and self._clock_s() >= token.issued_s + self.settings.min_period_s:
            self._token = token._replace(due_s=0)
            self._wakes.set()

    def keep_fresh(self) -> None:
        """Retrieve a token now, and later ones on a thread until `release`. Raise ClientError if the first fails."""
        self.token()
        with self._lock:
            self._keepers += 1
            if self._keepers > 1:
                return
            self._wakes = threading.Event()
        threading.Thread(
            target=self._renew_until_closed, args=(self._wakes,), name="tailrace-token", daemon=True
        ).start()

    def release(self) -> None:
        with self._lock:
            self._keepers -= 1
            self._wakes.set()

    def _renew_until_closed(self, wakes: threading.Event) -> None:
        backoff_s = 0.0
        while self._keepers and wakes is self._wakes:
            token = self._token
            wait_s = backoff_s if token is None else max(token.due_s - self._clock_s(), backoff_s)
            wakes.wait(min(wait_s, 60.0))  # a change of the system clock is noticed within a minute
            wakes.clear()
            if token is not None and self._clock_s() < (self._token or token).due_s:
                continue
            try:
                with self._lock:
                    self._retrieve()
                backoff_s = 0.0
            except Exception as error:  # the thread must survive: without a token the broker cannot connect
                backoff_s = min(max(2 * backoff_s, 1.0), RETRY_S_MAX)
                _log.warning("cannot retrieve a new token", extra=fields(login=self.settings.name, error=error))

    def _retrieve(self) -> _Token:
        try:
            text = self._get(self.settings)
            made = self._token = self._read(text)
        except ClientError as error:
            self.failure = str(error)
            raise
        return made

    def _read(self, text: str) -> _Token:
        now_s = self._clock_s()
        try:
            claims = decode_part(split_token(text)[1], CLAIMS_CHARS_MAX)
        except MalformedToken as error:
            raise AuthenticationFailed(f"the retrieved token is not a JSON Web Token: {error}") from None
        expires = claims.get("exp")
        if isinstance(expires, bool) or not isinstance(expires, int | float) or not expires > now_s:
            raise AuthenticationFailed(f"the retrieved token has expired, or has no expiry: exp {expires!r:.40}")
        settings = self.settings
        share = settings.window_factor + random.random() * settings.window_jitter
        due_s = min(now_s + (expires - now_s) * share, expires - settings.buffer_s)
        earliest_s = min(now_s + settings.min_period_s, now_s + (expires - now_s) * share)
        return _Token(text, now_s, expires, max(due_s, earliest_s))


@lru_cache(maxsize=64)
def login_of(settings: OauthLogin) -> TokenLogin:
    """Return the login that all connections with these settings share."""
    return TokenLogin(settings)
