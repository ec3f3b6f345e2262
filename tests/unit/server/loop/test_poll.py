"""The portable poll reports the same events as epoll, and the portable wake-up wakes."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator

import pytest

from tailrace.server.loop import wakeup
from tailrace.server.loop.poll import BROKEN, READABLE, WRITABLE, Poll, PortablePoll, forget
from tailrace.server.loop.wakeup import WakeUp

POLLS = [pytest.param(PortablePoll, id="portable")]
if hasattr(select, "epoll"):
    POLLS.append(pytest.param(select.epoll, id="epoll"))
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset


@pytest.fixture(params=POLLS)
def poll(request: pytest.FixtureRequest) -> Iterator[Poll]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the two ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    with near, far:
        yield near, far


def test_events_are_reported_according_to_the_interest(poll: Poll, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    poll.register(near.fileno(), READABLE)
    assert poll.poll(0) == []
    far.send(b"x")
    assert poll.poll(5) == [(near.fileno(), READABLE)]
    poll.modify(near.fileno(), WRITABLE)
    assert poll.poll(5) == [(near.fileno(), WRITABLE)]
    poll.modify(near.fileno(), 0)
    assert poll.poll(0) == []
    poll.unregister(near.fileno())


def test_an_ended_stream_is_readable_and_not_broken(poll: Poll, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    poll.register(near.fileno(), READABLE)
    far.shutdown(socket.SHUT_WR)
    assert poll.poll(5) == [(near.fileno(), READABLE)]
    assert near.recv(1) == b""


@pytest.mark.parametrize("interest", [0, READABLE, WRITABLE])
def test_a_reset_is_reported_for_every_interest(
    poll: Poll, pair: tuple[socket.socket, socket.socket], interest: int
) -> None:
    near, far = pair
    poll.register(near.fileno(), interest)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    far.close()
    ((descriptor, mask),) = poll.poll(5)
    assert descriptor == near.fileno()
    assert mask & BROKEN


def test_a_forgotten_descriptor_may_be_closed_and_its_number_reused(poll: Poll) -> None:
    first = socket.socket()
    number = first.fileno()
    poll.register(number, READABLE)
    forget(poll, number)
    forget(poll, number)
    first.close()
    assert poll.poll(0) == []
    with socket.socket() as second:
        assert second.fileno() == number
        poll.register(number, 0)


def test_a_hang_up_without_an_error_is_ready_for_the_interest() -> None:
    class HungUp:
        def register(self, descriptor: int, interest: int) -> None:
            pass

        def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
            return [(4, select.POLLHUP), (5, select.POLLHUP | select.POLLIN), (6, select.POLLHUP)]

    poll = PortablePoll()
    poll._poll = HungUp()  # type: ignore[assignment]
    for descriptor, interest in ((4, WRITABLE), (5, READABLE), (6, 0)):
        poll.register(descriptor, interest)
    assert poll.poll(0) == [(4, WRITABLE), (5, READABLE), (6, select.POLLHUP)]


@pytest.mark.parametrize("has_eventfd", [False, True])
def test_a_wake_up_that_is_set_too_often_is_cleared(has_eventfd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "_HAS_EVENTFD", has_eventfd and hasattr(wakeup.os, "eventfd"))
    wake, poll = WakeUp(), PortablePoll()
    poll.register(wake.descriptor, READABLE)
    for _ in range(20_000):  # more than a pipe holds
        wake.set()
    assert poll.poll(0) == [(wake.descriptor, READABLE)]
    for _ in range(100):
        if poll.poll(0):
            wake.clear()
    assert poll.poll(0) == []
    wake.set()
    assert poll.poll(0)
    wake.close()
