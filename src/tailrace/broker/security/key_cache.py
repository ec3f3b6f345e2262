"""KeyCache: the signing keys of a listener's identity provider, fetched on another thread.

    select(…)          return the key for a token from the last fetch
    fetch_for(kid, …)  fetch the keys again because a token names an unknown key; its connection waits

Keys are fetched every jwks.endpoint.refresh.ms, and when a token names an unknown key. An unauthenticated client
chooses that name, so these fetches are limited:

1. Two fetches are at least `PERIOD_MS_MIN` apart.
2. A name that was not found is not fetched again for a minute.
3. At most `HELD_MAX` connections wait.

A failed fetch is retried with a back-off that doubles, until jwks.endpoint.retry.backoff.max.ms have passed. Meanwhile
the old keys stay in use.

Connections wait in the purgatory with the cache as their key, and are checked after each fetch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tailrace.broker.config.oauth_config import JwksSettings
from tailrace.model.log_fields import fields
from tailrace.waiting.chore import Chore
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

if TYPE_CHECKING:
    from tailrace.broker.security.signing_keys import SigningKey, SigningKeys

PERIOD_MS_MIN: Final = 5_000
HELD_MAX: Final = 128
HELD_MS_MAX: Final = 20_000  # less than a client's time limit for authentication
KEY_ID_CHARS_MAX: Final = 1_000
_MISSING_MS: Final = 60_000
_MISSING_MAX: Final = 64
_REPORTED_MAX: Final = 10  # unusable keys that are logged after a fetch
_log = logging.getLogger(__name__)


class KeyCache:
    def __init__(
        self,
        settings: JwksSettings,
        load: Callable[[], SigningKeys],
        submit: Callable[[Chore], None],
        purgatory: Purgatory,
        now_ms: int,
    ) -> None:
        """Fetch the keys for the first time, before returning. Exceptions of `load` are raised."""
        self._settings = settings
        self._load = load
        self._submit = submit
        self._purgatory = purgatory
        self._keys = load()
        self._report_left_out()
        self._missing: dict[
            str, int
        ] = {}  # key ids that were not found, with the end of the time in which they are not fetched again
        self._began_ms = now_ms - PERIOD_MS_MIN  # the start of the last fetch; the next may follow at once
        self._failing_since_ms: int | None = None
        self._backoff_ms = 0
        self._is_fetching = False
        self._timer: _FetchTimer | None = None
        self.fetches = 0  # completed fetches, failed ones included, the first one excluded
        self._plan(now_ms + settings.refresh_ms)

    def select(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        return self._keys.select(key_id, algorithm)

    def fetch_for(self, key_id: str | None, now_ms: int) -> bool:
        """Fetch the keys because a token names an unknown key. Return False if the token must not wait."""
        if key_id is None or len(key_id) > KEY_ID_CHARS_MAX or self._purgatory.watched_by(self) >= HELD_MAX:
            return False
        if self._missing.get(key_id, now_ms) > now_ms and not self._is_awaited:
            return False
        self._missing.pop(key_id, None)
        self._missing[key_id] = now_ms + _MISSING_MS
        if len(self._missing) > _MISSING_MAX:
            del self._missing[next(iter(self._missing))]
        self._plan(max(now_ms, self._began_ms + PERIOD_MS_MIN))
        return True

    @property
    def _is_awaited(self) -> bool:
        """True if a fetch is running, or connections wait for a planned fetch."""
        return self._is_fetching or self._purgatory.watched_by(self) > 0

    def _plan(self, due_ms: int) -> None:
        """Plan a fetch at this time, unless a fetch is running or planned earlier."""
        if self._is_fetching or (self._timer is not None and self._timer.deadline_ms <= due_ms):
            return
        if self._timer is not None:
            self._purgatory.cancel(self._timer)
        self._timer = _FetchTimer(self, due_ms)
        self._purgatory.watch(self._timer, ())

    def fetch(self, now_ms: int) -> None:
        self._timer = None
        self._is_fetching = True
        self._began_ms = now_ms
        self._submit(_Fetch(self, self._load))

    def fetched(self, keys: SigningKeys, now_ms: int) -> None:
        has_changed = keys.left_out != self._keys.left_out
        self._keys = keys
        if has_changed:
            self._report_left_out()
        self._failing_since_ms, self._backoff_ms = None, 0
        self._end_fetch(now_ms + self._settings.refresh_ms, now_ms)

    def not_fetched(self, error: BaseException, now_ms: int) -> None:
        """Retry soon. After retry.backoff.max.ms, wait for the next regular fetch."""
        settings = self._settings
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        self._backoff_ms = 2 * self._backoff_ms or max(settings.retry_backoff_ms, 1)
        next_ms = now_ms + self._backoff_ms
        if next_ms <= self._failing_since_ms + settings.retry_backoff_max_ms:
            self._is_fetching = False
            self._plan(next_ms)
            return
        self._failing_since_ms, self._backoff_ms = None, 0
        _log.warning(
            "the keys of the identity provider cannot be fetched; the keys of the last fetch stay in use",
            extra=fields(url=settings.url, error=error),
        )
        self._end_fetch(now_ms + settings.refresh_ms, now_ms)

    def _report_left_out(self) -> None:
        for reason in self._keys.left_out[:_REPORTED_MAX]:
            _log.warning("a key of the identity provider is not used", extra=fields(url=self._settings.url, key=reason))

    def _end_fetch(self, next_ms: int, now_ms: int) -> None:
        self._is_fetching = False
        self.fetches += 1
        self._plan(next_ms)
        self._purgatory.check(self, now_ms)


class _FetchTimer(DelayedOperation):
    """The time of the next fetch."""

    __slots__ = ("_cache",)

    def __init__(self, cache: KeyCache, due_ms: int) -> None:
        super().__init__(due_ms)
        self._cache = cache

    def try_complete(self, now_ms: int) -> bool:
        return False

    def expire(self, now_ms: int) -> None:
        self._cache.fetch(now_ms)


class _Fetch:
    """A fetch as a chore."""

    def __init__(self, cache: KeyCache, load: Callable[[], SigningKeys]) -> None:
        self._cache = cache
        self.run = load

    def apply(self, keys: SigningKeys, now_ms: int) -> None:
        self._cache.fetched(keys, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._cache.not_fetched(error, now_ms)
