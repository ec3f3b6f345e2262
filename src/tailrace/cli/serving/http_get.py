"""An HTTP GET of a broker's metrics endpoint."""

from __future__ import annotations

import http.client
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tailrace.cli.errors import CommandError

TIMEOUT_S: Final = 10.0


def _reason(error: Exception) -> str:
    """Return the text of an error, without the number of the system's error code."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:] if text else type(error).__name__


class Page(NamedTuple):
    status: int
    reason: str
    text: str


def get(url: str, path: str, *, more_s: float = 0.0) -> Page:
    """Get a page from `url`, which is HOST:PORT or http://HOST:PORT. A path in `url` overrides `path`, except /metrics.

    `more_s` is added to the timeout.
    """
    place = urlsplit(url if "://" in url else f"http://{url}")
    if place.scheme != "http" or not place.hostname:
        raise CommandError(f"--metrics {url} is not HOST:PORT or http://HOST:PORT")
    own = place.path if place.path not in ("", "/", "/metrics") else path
    try:
        connection = http.client.HTTPConnection(place.hostname, place.port or 80, timeout=TIMEOUT_S + more_s)
        try:
            connection.request("GET", own)
            answer = connection.getresponse()
            return Page(answer.status, answer.reason, answer.read().decode())
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        hint = "was the broker started with --metrics-port?"
        raise CommandError(f"no response from {url}: {_reason(error)} ({hint})") from error
