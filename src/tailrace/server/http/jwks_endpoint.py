"""The keys of an identity provider (JWKS), read from its endpoint or a file, on a separate thread.

A provider that does not respond must not block one of the two threads that flush and clean logs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from tailrace.broker.config.oauth_config import JwksSettings
from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.http_exchange import exchange, read_file_url
from tailrace.client.security.tls_settings import tls_of
from tailrace.waiting.chore import Chore

_OK = 200


def fetch_keys(settings: JwksSettings) -> bytes:
    """Return the set of keys at the provider. Raise OSError."""
    if settings.url.startswith("file:"):
        return read_file_url(settings.url)
    try:
        tls = tls_of(settings.tls_options)
        answer = exchange(settings.url, tls=tls)
    except UnsupportedSecurity as error:
        raise OSError(str(error)) from error
    if answer.status != _OK:
        raise OSError(f"the identity provider responded with HTTP status {answer.status}")
    return answer.body


class FetchThreads:
    """Runs each fetch on a new thread. A cache has one fetch at a time, so there are at most as many threads as
    listeners."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], bool], clock_ms: Callable[[], int]) -> None:
        self._call_soon = call_soon
        self._clock_ms = clock_ms

    def submit(self, chore: Chore) -> None:
        threading.Thread(target=self._run, args=(chore,), name="tailrace-jwks", daemon=True).start()

    def _run(self, chore: Chore) -> None:
        try:
            result = chore.run()
        except Exception as error:
            self._call_soon(partial(self._failed, chore, error))
        else:
            self._call_soon(lambda: chore.apply(result, self._clock_ms()))

    def _failed(self, chore: Chore, error: Exception) -> None:
        chore.failed(error, self._clock_ms())
