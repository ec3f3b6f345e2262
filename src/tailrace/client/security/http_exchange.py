"""exchange: one bounded HTTP request to an identity provider, for tokens or for keys.

Time, size and place are bounded: the whole exchange ends after `timeout_s`, an answer has at most `ANSWER_BYTES_MAX`
bytes, and a redirect is not followed, so that credentials reach no other host. It blocks: it is not for the loop.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from tailrace.client.security.tls_settings import Tls
from tailrace.client.security.tls_socket import client_context

ANSWER_BYTES_MAX: Final = 524_288
TIMEOUT_S: Final = 10.0


class Answer(NamedTuple):
    status: int
    body: bytes


def exchange(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    tls: Tls | None = None,
    connect_timeout_s: float = TIMEOUT_S,
    timeout_s: float = TIMEOUT_S,
) -> Answer:
    """Return the answer whatever its status. Raise OSError if there is none."""
    place = urlsplit(url)
    assert place.hostname is not None
    connection: http.client.HTTPConnection
    if place.scheme == "https":
        context = client_context(tls or Tls())
        connection = http.client.HTTPSConnection(place.hostname, place.port, timeout=connect_timeout_s, context=context)
    else:
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=connect_timeout_s)
    path = (place.path or "/") + (f"?{place.query}" if place.query else "")
    timer: threading.Timer | None = None
    try:
        connection.connect()
        connection.sock.settimeout(timeout_s)
        # A timeout of the socket counts for each piece that comes; the timer ends an answer that comes in drops.
        timer = threading.Timer(timeout_s, _cut_off, (connection.sock,))
        timer.daemon = True
        timer.start()
        connection.request(method, path, body, {"Accept": "application/json", **(headers or {})})
        response = connection.getresponse()
        data = response.read(ANSWER_BYTES_MAX + 1)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"{url} does not answer in HTTP: {error!r:.200}") from error
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if len(data) > ANSWER_BYTES_MAX:
        raise OSError(f"{url} answers with more than {ANSWER_BYTES_MAX} bytes")
    if 300 <= response.status < 400:
        raise OSError(f"{url} redirects to {response.getheader('Location')!r:.200}, which is not followed")
    return Answer(response.status, data)


def read_file_url(url: str) -> bytes:
    """Return what a file:// address names. Raise OSError."""
    with open(unquote(urlsplit(url).path), "rb") as file:
        data = file.read(ANSWER_BYTES_MAX + 1)
    if len(data) > ANSWER_BYTES_MAX:
        raise OSError(f"{url} has more than {ANSWER_BYTES_MAX} bytes")
    return data


def _cut_off(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # not that of TLS, which belongs to the other thread
