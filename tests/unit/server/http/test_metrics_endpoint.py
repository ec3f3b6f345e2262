"""HTTP on the loop: what is answered, what is bounded, and that clients of the broker do not have to wait."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest

from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.connections.listener import Listener
from tailrace.server.http.metrics_endpoint import CONNECTIONS_MAX, HEAD_BYTES_MAX
from tailrace.server.settings import ServerSettings
from tests.unit.server.harness import LOOPBACK, PATIENCE_S, Harness

GET = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"


@pytest.fixture
def harness() -> Iterator[Harness]:
    settings = ServerSettings(listeners=LOOPBACK, metrics=Endpoint("METRICS", "127.0.0.1", 0))
    with Harness(settings=settings) as made:
        yield made


class Scraper:
    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        assert harness.metrics is not None
        self.socket = socket.create_connection(("127.0.0.1", harness.metrics.endpoint.port), timeout=PATIENCE_S)
        self.socket.setblocking(False)
        self.held = b""
        self.is_closed = False

    def look(self) -> None:
        try:
            while data := self.socket.recv(1 << 16):
                self.held += data
            self.is_closed = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.is_closed = True

    def until(self, end: bytes) -> bytes:
        """Return the bytes up to an end, with the loop running."""

        def has_come() -> bool:
            self.look()
            return end in self.held

        self._harness.until(has_come)
        text, _, self.held = self.held.partition(end)
        return text + end

    def until_closed(self) -> bytes:
        def is_closed() -> bool:
            self.look()
            return self.is_closed

        self._harness.until(is_closed)
        return self.held

    def ask(self, request: bytes) -> tuple[str, str]:
        """Return head and body of a chunked response."""
        self.socket.sendall(request)
        head = self.until(b"\r\n\r\n").decode()
        return head, _unchunked(self.until(b"0\r\n\r\n"))


def _unchunked(data: bytes) -> str:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return body.decode()


def test_a_connection_may_send_several_requests(harness: Harness) -> None:
    scraper = Scraper(harness)
    client = harness.client()
    for number in range(3):
        head, body = scraper.ask(GET)
        assert head.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
        assert f"fake_requests {number}\n" in body
        assert 'tailrace_build_info{version="' in body
        harness.ask(client, b"Ehello")


def test_openmetrics_is_sent_to_scrapers_that_accept_it(harness: Harness) -> None:
    head, body = Scraper(harness).ask(GET[:-2] + b"Accept: application/openmetrics-text\r\n\r\n")
    assert "Content-Type: application/openmetrics-text; version=1.0.0" in head
    assert body.endswith("# EOF\n")


def test_an_old_client_gets_the_text_and_the_end_of_the_connection(harness: Harness) -> None:
    scraper = Scraper(harness)
    scraper.socket.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    answer = scraper.until_closed()
    assert b"Connection: close" in answer
    assert b"chunked" not in answer
    assert answer.endswith(b"\n")


def test_a_request_may_arrive_byte_by_byte(harness: Harness) -> None:
    scraper = Scraper(harness)
    for byte in GET[:-1]:
        scraper.socket.sendall(bytes([byte]))
        harness.turn()
    scraper.look()
    assert scraper.held == b""
    assert "fake_requests 0" in scraper.ask(GET[-1:])[1]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /other HTTP/1.1\r\nConnection: close\r\n\r\n", b"404"),
        (b"HEAD /metrics HTTP/1.1\r\nConnection: close\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"200"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"\x00\x00\x00\x10\x00\x03\x00\x00 not http at all\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 2 * HEAD_BYTES_MAX, b"431"),
    ],
)
def test_every_request_gets_a_response(harness: Harness, request_: bytes, status: bytes) -> None:
    scraper = Scraper(harness)
    scraper.socket.sendall(request_)
    assert scraper.until_closed().startswith(b"HTTP/1.1 " + status)


def test_a_scraper_that_disconnects_is_removed(harness: Harness) -> None:
    harness.broker.measured = 200_000
    for _ in range(3 * CONNECTIONS_MAX):
        scraper = Scraper(harness)
        scraper.socket.sendall(GET)
        scraper.until(b"HTTP/1.1 200")
        scraper.socket.close()
        harness.turn(3)
    harness.broker.measured = 1
    assert "fake_numbers" in Scraper(harness).ask(GET)[1]


def test_with_too_many_connections_the_longest_silent_one_is_closed(harness: Harness) -> None:
    silent = [Scraper(harness) for _ in range(CONNECTIONS_MAX)]
    harness.turn(20)
    silent[0].ask(GET)
    Scraper(harness).ask(GET)
    assert silent[1].until_closed() == b""
    assert "fake_requests" in silent[0].ask(GET)[1]


def test_other_requests_are_served_during_a_long_scrape(harness: Harness) -> None:
    """A scrape takes many passes, and a client is answered in each of them."""
    harness.broker.measured = 100_000
    client = harness.client()
    scraper = Scraper(harness)
    scraper.socket.sendall(GET)
    scraper.until(b"HTTP/1.1 200")
    answered = 0
    passes = harness.loop.statistics().passes
    while b"0\r\n\r\n" not in scraper.held[-8:]:
        assert harness.ask(client, b"Ehello") == b"hello"
        answered += 1
        scraper.look()
    assert answered >= 20
    assert harness.loop.statistics().passes - passes >= 20
    assert b'fake_numbers{number="99999"} 99999' in scraper.held


def test_a_request_that_is_never_finished_is_closed_after_30_seconds(harness: Harness) -> None:
    silent, slow = Scraper(harness), Scraper(harness)
    slow.socket.sendall(b"GET /metrics")
    harness.turn(5)
    for _ in range(29):
        harness.timer_ms += 1_000
        slow.socket.sendall(b"x")
        harness.turn(3)
    slow.look()
    assert not slow.is_closed
    harness.timer_ms += 1_000
    silent.until_closed()
    slow.until_closed()


def test_a_scraper_with_an_interval_of_a_minute_keeps_its_connection(harness: Harness) -> None:
    scraper = Scraper(harness)
    for _ in range(3):
        assert "200 OK" in scraper.ask(GET)[0]
        harness.timer_ms += 60_000
        harness.turn(3)


def test_without_descriptors_the_metrics_listener_waits_a_second(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []

    def accept(self: Listener) -> None:
        calls.append(None)
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Listener, "accept", accept)
        scraper = Scraper(harness)
        harness.until(lambda: bool(calls))
        harness.turn(20)
        assert len(calls) == 1, "it does not try again at once"
    harness.timer_ms += 1_000
    assert "200 OK" in scraper.ask(GET)[0]


def test_health_and_readiness_are_reported(harness: Harness) -> None:
    scraper = Scraper(harness)
    head, body = scraper.ask(b"GET /healthz HTTP/1.1\r\n\r\n")
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 200 OK", "alive\n")
    head, body = scraper.ask(b"GET /readyz HTTP/1.1\r\n\r\n")
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 200 OK", "ready\n")
    harness.broker.trouble = "the controllers have fenced this broker"
    head, body = scraper.ask(b"GET /readyz HTTP/1.1\r\n\r\n")
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 503 Service Unavailable", f"{harness.broker.trouble}\n")
    assert "200 OK" in scraper.ask(b"GET /healthz HTTP/1.1\r\n\r\n")[0]


def test_a_stopping_broker_is_healthy_and_not_ready(harness: Harness) -> None:
    client = harness.client()
    client.send(b"Pwait")
    harness.until(lambda: bool(harness.broker.parked))
    harness.loop.drain()
    scraper = Scraper(harness)
    head, body = scraper.ask(b"GET /readyz HTTP/1.1\r\n\r\n")
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 503 Service Unavailable", "the broker is stopping\n")
    assert "200 OK" in scraper.ask(b"GET /healthz HTTP/1.1\r\n\r\n")[0]
