"""An HTTP GET of a broker's metrics endpoint.

The address may be wrong. Whatever responds there, the command prints a one-line error and no traceback.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from tailrace.cli.errors import CommandError
from tailrace.client.security.http_exchange import exchange

TIMEOUT_S: Final = 10.0  # to connect, and to respond
PAGE_BYTES_MAX: Final = 134_217_728  # the metrics of ten thousand partitions have 30 MB


def _reason(error: Exception) -> str:
    """Return the text of an error, without the number of the system's error code."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:] if text else type(error).__name__


class Page(NamedTuple):
    status: int
    text: str

    @property
    def status_text(self) -> str:
        """The status with its standard name: 404 Not Found."""
        return f"{self.status} {http.client.responses.get(self.status, '')}".rstrip()


def get(url: str, path: str, *, extra_timeout_s: float = 0.0) -> Page:
    """Get a page from `url`, which is HOST:PORT or http://HOST:PORT.

    A path in `url` replaces `path`, unless it is / or /metrics.
    """
    address = _parsed(url)
    used_path = address.path if address.path not in ("", "/", "/metrics") else path
    try:
        answer = exchange(
            f"http://{address.netloc}{used_path}",
            headers={"Accept": "*/*"},
            connect_timeout_s=TIMEOUT_S,
            timeout_s=TIMEOUT_S + extra_timeout_s,
            bytes_max=PAGE_BYTES_MAX,
        )
        return Page(answer.status, answer.body.decode())
    except (OSError, ValueError) as error:
        hint = "was the broker started with --metrics-port?"
        raise CommandError(f"no response from {url}: {_reason(error)} ({hint})") from error


def _parsed(url: str) -> SplitResult:
    try:
        address = urlsplit(url if "://" in url else f"http://{url}")
        if address.scheme == "http" and address.hostname and address.port != 0:
            return address
    except ValueError:  # of an IPv6 address, or of `port`
        pass
    raise CommandError(f"--metrics {url} is not HOST:PORT or http://HOST:PORT")


@contextmanager
def page_errors(url: str, path: str) -> Iterator[None]:
    """Raise CommandError if the block fails to parse a page, because a broker did not write it."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise CommandError(
            f"{url} does not serve {path} in a format that this version supports: is it a broker's metrics port?"
        ) from error
