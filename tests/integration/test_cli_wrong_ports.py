"""A command at a port that speaks HTTP or TLS instead of Kafka ends within seconds. Its error names the protocol."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.command import tailrace
from tests.support.secured import TLS


class Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments: object) -> None:
        """Print nothing: a client that speaks another protocol is expected."""


@contextmanager
def http_server(*, tls: bool) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "broker.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize(
    ("server_tls", "settings", "words"),
    [
        (False, [], "is an HTTP server, not a Kafka broker"),
        (False, ["security.protocol=SSL"], "is an HTTP server, not a Kafka broker"),
        (True, [], "uses TLS: set security.protocol to SSL"),
        (
            True,
            ["security.protocol=SSL", f"ssl.ca.location={TLS / 'authority.pem'}"],
            "is an HTTP server, not a Kafka broker",
        ),
    ],
    ids=["HTTP", "HTTP with TLS settings", "HTTPS", "HTTPS with TLS settings"],
)
def test_a_port_with_another_protocol_is_named_at_once(server_tls: bool, settings: list[str], words: str) -> None:
    begun = time.monotonic()
    with http_server(tls=server_tls) as address:
        ran = tailrace("topics", "list", "-b", address, *[word for one in settings for word in ("-X", one)])
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err
    assert time.monotonic() - begun < 12
