"""Commands with --metrics at a server that is not a broker: each ends soon, with one sentence and little memory."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tailrace.cli.serving import http_get
from tests.support.command import tailrace

COMMANDS = (
    "top --once",
    "explain waiting",
    "explain fetch t --offset 0",
    "explain waiting --json",
    "explain fetch t --offset 0 --json",
)
PAGES = {
    "nothing": b"",
    "not text": b"\xff\xfe",
    "numbers that are none": b"process_resident_memory_bytes NaN\nprocess_open_fds +Inf\n",
    "a metric without a number": b"a b\n",
    "an array": b"[]",
    "nested arrays": b"[" * 100_000,
    "null": b"null",
    "an object of another form": b'{"error": "\\u001b[2J", "waiting": null, "version": {}, "refused": [1]}',
}


@contextmanager
def server(respond: Callable[[socket.socket], None]) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    respond(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_of_another_form_is_named(page: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page)
    with server(lambda connection: connection.sendall(head + page)) as address:
        for command in COMMANDS:
            ran = tailrace(*command.split(), "--metrics", address)
            assert ran.status in (0, 2), (command, ran)
            assert not re.search("[\x00-\x08\x0b-\x1f]", ran.out + ran.err)


def test_a_response_that_arrives_too_slowly_or_has_no_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_get, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(http_get, "PAGE_BYTES_MAX", 1_000_000)

    def slowly(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"#\n")
            time.sleep(0.02)

    def endlessly(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"#\n" * 10_000)

    for respond, words in ((slowly, "not complete after 0.3 s"), (endlessly, "sent more than 1000000 bytes")):
        with server(respond) as address:
            ran = tailrace("explain", "waiting", "--metrics", address)
            assert ran.status == 2
            assert words in ran.err


@pytest.mark.parametrize("address", ["[::1", "[x]:1", "h:abc", "h:99999", "https://h:1", "http://"])
def test_an_address_that_cannot_be_parsed_is_named(address: str) -> None:
    for command in COMMANDS:
        ran = tailrace(*command.split(), "--metrics", address)
        assert ran.status == 2, (command, ran)
        assert f"--metrics {address} is not HOST:PORT or http://HOST:PORT" in ran.err
