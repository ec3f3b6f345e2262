"""queued.max.request.bytes: memory of requests that arrive or are handled, over all connections."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.receiving.receive_buffers import POOLED_BYTES, FrameBuffers
from tailrace.server.settings import ServerSettings
from tests.unit.server.fake_broker import FakeBroker
from tests.unit.server.harness import LOOPBACK, SIZE, Client, Harness

LARGE = 4_000_000
LIMIT = 4 * LARGE


class KeepingBroker(FakeBroker):
    """Answers nothing and keeps the requests."""

    def handle(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        self.kept.append(frame)
        return False


def limited(broker: FakeBroker | None = None) -> Harness:
    return Harness(broker, ServerSettings(listeners=LOOPBACK, request_bytes_max=LARGE, queued_bytes_max=LIMIT))


@pytest.fixture
def harness() -> Iterator[Harness]:
    with limited() as made:
        yield made


def begin(harness: Harness, size: int, sent: int) -> Client:
    """Send the first bytes of a request, and wait until they have been received."""
    client = harness.client()
    client.socket.setblocking(False)
    data = memoryview(SIZE.pack(size) + b"E" + bytes(sent - 1))
    while data:
        try:
            data = data[client.socket.send(data) :]
        except BlockingIOError:
            harness.turn()
        except ConnectionError:
            break
    harness.turn(20)
    return client


def test_unfinished_requests_above_the_limit_are_dropped_oldest_first(harness: Harness) -> None:
    clients = [begin(harness, LARGE, LARGE - 1) for _ in range(6)]
    states = [client.is_closed() for client in clients]
    assert states[-2:] == [False, False]
    assert states == sorted(states, reverse=True)
    assert 2 <= sum(states) <= 4
    clients[-1].socket.settimeout(20)
    clients[-1].socket.sendall(b"!")
    assert harness.receive(clients[-1], 1) == [bytes(LARGE - 2) + b"!"]


def test_an_announced_request_without_bytes_does_not_count(harness: Harness) -> None:
    clients = [begin(harness, LARGE, 100) for _ in range(20)]
    assert not any(client.is_closed() for client in clients)


def test_an_ordinary_request_finds_room_while_large_ones_are_handled() -> None:
    broker = KeepingBroker()
    with limited(broker) as harness:
        for _ in range(6):
            begin(harness, LARGE, LARGE)
        handled = len(broker.kept)
        assert handled * LARGE <= LIMIT
        ordinary = begin(harness, POOLED_BYTES, POOLED_BYTES)
        assert not ordinary.is_closed()
        assert len(broker.kept) == handled + 1


def test_memory_of_a_handled_request_is_free_again() -> None:
    buffers = FrameBuffers()
    view = buffers.take(LARGE)
    part = view[10:20]
    assert buffers.lent_bytes == LARGE
    del view
    assert buffers.lent_bytes == LARGE
    del part
    gc.collect()
    assert buffers.lent_bytes == 0
    assert FrameInput(LARGE, buffers).large_size == 0


@pytest.mark.parametrize(("text", "limit"), [("-1", 10_000), ("5000", 5_000)])
def test_the_limit_is_kafkas_setting_or_ten_requests(text: str, limit: int) -> None:
    settings = {"socket.request.max.bytes": "1000", "queued.max.request.bytes": text}
    assert ServerSettings.parse(settings).queued_bytes_max == limit
