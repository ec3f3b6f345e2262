"""A client can only harm its own connection."""

from __future__ import annotations

import errno
import logging
import random
import socket
from struct import pack
from typing import Any

import pytest

from tailrace.model.errors import FatalError
from tailrace.server.connections.listener import Listener
from tests.unit.server.harness import Harness, framed


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def assert_others_are_served(harness: Harness) -> None:
    """Check that another client is served."""
    assert harness.ask(harness.client(), b"Estill here") == b"still here"


def test_random_bytes_close_only_their_connection() -> None:
    dice = random.Random(1)
    with Harness() as harness:
        for _ in range(60):
            client = harness.client()
            client.socket.sendall(dice.randbytes(dice.choice((1, 3, 4, 5, 100, 5000))))
            if dice.random() < 0.5:
                client.close()
            harness.turn(2)
        assert_others_are_served(harness)
        for client in harness.clients:
            client.close()
        harness.until(lambda: harness.loop.statistics().connections == 0)
        statistics = harness.loop.statistics()
        assert statistics.closed["invalid frame"] > 10
        assert (statistics.held_bytes, statistics.pending_bytes) == (0, 0)


@pytest.mark.parametrize("size", [-1, -(2**31), 104_857_601, 2**31 - 1, int.from_bytes(b"GET ", "big")])
def test_an_invalid_frame_size_closes_the_connection(size: int) -> None:
    with Harness() as harness:
        client, other = harness.client(), harness.client()
        client.send(b"Ebefore")
        client.socket.sendall(pack(">i", size) + b"whatever follows")
        assert harness.receive(client, 1) == [b"before"]
        harness.until(client.is_closed)
        assert harness.loop.statistics().closed == {"invalid frame": 1}
        assert harness.ask(other, b"Ex") == b"x"


def test_many_bad_frames_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with Harness() as harness, caplog.at_level(logging.WARNING):
        for _ in range(30):
            client = harness.client()
            client.socket.sendall(b"\xff" * 10)
            harness.until(client.is_closed)
        (record,) = caplog.records
        assert record.getMessage() == "connection closed: invalid frame"
        reported = record.__dict__["fields"]
        assert reported["client"].startswith("127.0.0.1:")
        assert "a frame of -1 bytes" in str(reported["error"])


def test_announced_sizes_that_are_never_sent_take_no_memory() -> None:
    with Harness() as harness:
        clients = [harness.client() for _ in range(50)]
        before = resident_bytes()
        for client in clients:
            client.socket.sendall(pack(">i", 104_857_600) + b"x" * 100)
        harness.until(lambda: harness.loop.statistics().held_bytes == 50 * 100)
        assert resident_bytes() - before < 16_000_000
        assert_others_are_served(harness)


def test_a_slow_reader_takes_no_memory() -> None:
    with Harness() as harness:
        clients = [harness.client(receive_buffer_bytes=4096) for _ in range(40)]
        before = resident_bytes()
        for client in clients:
            client.socket.setblocking(False)
            requests = framed(*[b"B" + pack(">i", 60_000)] * 5000)
            client.socket.send(requests)
        harness.turn(30)
        assert harness.loop.statistics().writing == 40
        assert resident_bytes() - before < 40 * 400_000
        assert_others_are_served(harness)


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 20, 70_000])
def test_a_client_that_disconnects_within_a_frame_leaves_no_state(cut: int) -> None:
    with Harness() as harness:
        for is_rude in (False, True):
            client = harness.client()
            client.socket.sendall(framed(b"E" + b"x" * 100_000)[:cut])
            harness.turn(2)
            client.reset() if is_rude else client.close()
        harness.until(lambda: harness.loop.statistics().connections == 0)
        statistics = harness.loop.statistics()
        assert sum(statistics.closed.values()) == 2
        assert statistics.requests == 0
        assert_others_are_served(harness)


def test_a_client_that_disconnects_before_its_reply_is_reported_to_the_broker() -> None:
    with Harness() as harness:
        client, other = harness.client(), harness.client()
        client.send(b"Pnever read")
        harness.until(lambda: len(harness.broker.parked) == 1)
        client.reset()
        harness.until(lambda: harness.loop.statistics().connections == 1)
        assert harness.broker.parked == [], "the broker was notified"
        assert harness.ask(other, b"R") == b""


def test_a_half_closed_connection_still_gets_its_replies() -> None:
    with Harness() as harness:
        client, other = harness.client(), harness.client()
        client.send(b"Ea", b"Pb", b"Ec")
        client.socket.shutdown(socket.SHUT_WR)
        harness.until(lambda: len(harness.broker.parked) == 1)
        harness.ask(other, b"R")
        assert harness.receive(client, 3) == [b"a", b"b", b"c"]
        harness.until(client.is_closed)
        assert harness.loop.statistics().closed == {"end of stream": 1}


def test_a_reply_to_a_closed_connection_is_dropped() -> None:
    with Harness() as harness:
        client, other = harness.client(), harness.client()
        client.send(b"W" + pack(">i", 100) + b"late")
        harness.until(lambda: harness.broker.handled == 1)
        client.reset()
        harness.until(lambda: harness.loop.statistics().connections == 1)
        harness.clock_ms += 100
        harness.turn(3)
        assert harness.broker.delayed == []
        assert harness.ask(other, b"Ex") == b"x"


def test_an_exception_in_a_request_is_logged_and_closes_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    with Harness() as harness:
        client, other = harness.client(), harness.client()
        client.send(b"Ebefore", b"X", b"Ebehind")
        assert harness.receive(client, 1) == [b"before"]
        harness.until(client.is_closed)
        assert "RuntimeError: planned failure" in caplog.text
        assert harness.loop.statistics().closed == {"broker error": 1}
        assert harness.ask(other, b"Ex") == b"x"


def test_a_fatal_error_ends_the_loop() -> None:
    with Harness() as harness:
        harness.client().send(b"A")
        with pytest.raises(FatalError, match="planned failure"):
            harness.turn(5)


def test_without_descriptors_the_listener_pauses_and_resumes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Harness() as harness:
        other = harness.client()
        calls = []

        def accept(self: Any) -> Any:
            calls.append(None)
            raise OSError(errno.EMFILE, "Too many open files")

        with monkeypatch.context() as patch:
            patch.setattr(Listener, "accept", accept)
            client = harness.knock()
            harness.until(lambda: bool(calls))
            harness.turn(20)
            assert len(calls) == 1, "the listener does not retry at once"
            assert harness.loop.statistics().paused_listeners == 1
            assert harness.ask(other, b"Ex") == b"x"
            harness.timer_ms += 1000
            harness.until(lambda: len(calls) == 2)
        (record,) = [
            one for one in caplog.records if one.getMessage().startswith("connections wait for free descriptors")
        ]
        assert record.__dict__["fields"] == {"error": "Too many open files"}
        harness.timer_ms += 1000
        assert harness.ask(client, b"Ex") == b"x"
        assert harness.loop.statistics().paused_listeners == 0


def test_a_client_that_disconnects_while_it_is_accepted_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    with Harness() as harness:
        accept, failures = Listener.accept, [ConnectionAbortedError(errno.ECONNABORTED, "gone")]

        def accept_later(self: Any) -> Any:
            if failures:
                raise failures.pop()
            return accept(self)

        monkeypatch.setattr(Listener, "accept", accept_later)
        assert harness.ask(harness.client(), b"Ex") == b"x"
        assert failures == []
