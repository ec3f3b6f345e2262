"""exchange: one bounded HTTP request, for example to an identity provider for tokens or for keys.

The whole exchange ends after `timeout_s`. A response has at most `bytes_max` bytes. Redirects are not followed,
so that credentials reach no other host. The call blocks, so it must not be made on the loop.
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
    bytes_max: int = ANSWER_BYTES_MAX,
) -> Answer:
    """Return the response, whatever its status. Raise OSError if there is none."""
    address = urlsplit(url)
    assert address.hostname is not None
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        context = client_context(tls or Tls())
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=connect_timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=connect_timeout_s)
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    timer: threading.Timer | None = None
    is_late = threading.Event()
    try:
        connection.connect()
        connection.sock.settimeout(timeout_s)
        # The socket's timeout applies to each read. The timer ends a response that arrives slowly, byte by byte.
        timer = threading.Timer(timeout_s, _cut_off, (connection.sock, is_late))
        timer.daemon = True
        timer.start()
        connection.request(method, path, body, {"Accept": "application/json", **(headers or {})})
        response = connection.getresponse()
        data = response.read(bytes_max + 1)
        if is_late.is_set():
            raise TimeoutError(f"the response is not complete after {timeout_s:g} s")
    except http.client.RemoteDisconnected as error:
        raise OSError(f"{url} closed the connection without an HTTP response") from error
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"{url} did not send a valid HTTP response: {error!r:.200}") from error
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    if len(data) > bytes_max:
        raise OSError(f"{url} sent more than {bytes_max} bytes")
    if 300 <= response.status < 400:
        raise OSError(f"{url} redirects to {response.getheader('Location')!r:.200}, which is not followed")
    return Answer(response.status, data)


def read_file_url(url: str) -> bytes:
    """Return the content of a file:// URL. Raise OSError if it cannot be read or is too large."""
    with open(unquote(urlsplit(url).path), "rb") as file:
        data = file.read(ANSWER_BYTES_MAX + 1)
    if len(data) > ANSWER_BYTES_MAX:
        raise OSError(f"{url} has more than {ANSWER_BYTES_MAX} bytes")
    return data


def _cut_off(connected: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # not the TLS shutdown: the other thread uses the TLS state
