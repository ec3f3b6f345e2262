"""WebRequests: HTTP requests with a time limit and retries. Every thread has a connection of its own."""

from __future__ import annotations

import errno
import http.client
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

ATTEMPTS: Final = 5
ATTEMPT_SECONDS: Final = 60.0  # without progress
_FIRST_PAUSE: Final = 0.1
_LAST_PAUSE: Final = 5.0
_RETRIED: Final = frozenset({408, 409, 429, 500, 502, 503, 504})
_CHUNK: Final = 1024 * 1024
_BODY_MAX: Final = 256 * 1024 * 1024

Remaining = Callable[[], int]  # milliseconds


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    attempts: int

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")


def in_ms(milliseconds: int) -> Remaining:
    """Return a countdown from now on."""
    end = time.monotonic() + milliseconds / 1000
    return lambda: int((end - time.monotonic()) * 1000)


class WebRequests:
    def __init__(self, *, attempts: int = ATTEMPTS) -> None:
        self._attempts = attempts
        self._local = threading.local()

    def __reduce__(self) -> tuple[type[WebRequests], tuple[()]]:
        return WebRequests, ()

    def send(
        self,
        method: str,
        url: str,
        headers: Callable[[], Mapping[str, str]],
        body: bytes | memoryview = b"",
        *,
        remaining_ms: Remaining,
        retried: frozenset[int] = _RETRIED,
    ) -> Answer:
        """Send a request, and again after a failure that may pass. Return the last answer, whatever its status is.

        Raise TimeoutError if the time is over, and OSError if no attempt got an answer.
        """
        attempt, pause = 0, _FIRST_PAUSE
        while True:
            attempt += 1
            failure: Exception | None = None
            try:
                answer = self._once(method, url, headers(), body, remaining_ms)
                if answer.status not in retried:
                    return answer._replace(attempts=attempt)
            except (OSError, http.client.HTTPException) as error:
                failure, answer = error, None
                self._drop(url)
            left = remaining_ms() / 1000
            if left <= 0:
                raise TimeoutError(errno.ETIMEDOUT, "the time for the request is over", _shown(url)) from None
            if attempt == self._attempts:
                if answer is not None:
                    return answer._replace(attempts=attempt)
                why = f"the store cannot be reached ({attempt} attempts): {failure}"
                raise OSError(errno.ECONNREFUSED, why, _shown(url)) from None
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LAST_PAUSE)

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | memoryview, remaining_ms: Remaining
    ) -> Answer:
        parts = urlsplit(url)
        left = remaining_ms() / 1000
        if left <= 0:
            raise TimeoutError(errno.ETIMEDOUT, "the time for the request is over", _shown(url))
        connection = self._connection(parts.scheme, parts.netloc)
        connection.timeout = min(left, ATTEMPT_SECONDS)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target or "/", body=body or None, headers=dict(headers))
        response = connection.getresponse()
        pieces, size = [], 0
        while piece := response.read(_CHUNK):
            pieces.append(piece)
            size += len(piece)
            if size > _BODY_MAX:
                raise OSError(errno.EFBIG, f"an answer has more than {_BODY_MAX:,} bytes", _shown(url))
            if remaining_ms() <= 0:
                raise TimeoutError(errno.ETIMEDOUT, "the time for the request is over", _shown(url))
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, b"".join(pieces), 1)

    def _connection(self, scheme: str, host: str) -> http.client.HTTPConnection:
        open_ones: dict[tuple[str, str], http.client.HTTPConnection] = self._local.__dict__.setdefault("open", {})
        if (scheme, host) not in open_ones:
            kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
            open_ones[scheme, host] = kind(host)
        return open_ones[scheme, host]

    def _drop(self, url: str) -> None:
        parts = urlsplit(url)
        connection = self._local.__dict__.get("open", {}).pop((parts.scheme, parts.netloc), None)
        if connection is not None:
            connection.close()


def _shown(url: str) -> str:
    """Return an address without its query, which may have secrets."""
    return url.partition("?")[0]
