"""Large replies, slow readers, throttling, and the end of connections."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.server.connections.connection import OUTPUT_BYTES_MAX
from tailrace.server.settings import ServerSettings, SliceStrategy
from tests.unit.server.fake_broker import FakeBroker
from tests.unit.server.harness import LOOPBACK, Client, Harness

MEGABYTE = 1 << 20
CONTENT = random.Random(1).randbytes(4 * MEGABYTE)


def slice_of(position: int, size: int, head: bytes = b"head") -> bytes:
    return b"S" + pack(">qi", position, size) + head


def echo(content: bytes) -> bytes:
    return b"E" + content


@pytest.fixture(params=list(SliceStrategy), ids=lambda strategy: strategy.value)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    path = tmp_path / "segment.log"
    path.write_bytes(CONTENT)
    settings = ServerSettings(listeners=LOOPBACK, slices=request.param, send_buffer_bytes=65_536)
    file = DiskFiles().open(str(path), read_only=True)
    with Harness(FakeBroker(file), settings) as harness:
        yield harness
    file.close()


@pytest.mark.parametrize("size", [0, 1, 32_768, 32_769, 100_000, 3 * MEGABYTE])
def test_a_slice_is_sent_after_its_header(harness: Harness, size: int) -> None:
    client = harness.client()
    assert harness.ask(client, slice_of(77, size)) == b"head" + CONTENT[77 : 77 + size]
    assert harness.loop.statistics().pinned_files == 0


def test_slices_and_other_replies_stay_in_order(harness: Harness) -> None:
    dice = random.Random(2)
    client = harness.client()
    wanted = []
    for number in range(60):
        if dice.random() < 0.5:
            content = dice.randbytes(dice.choice((0, 10, 70_000)))
            client.send(echo(content))
            wanted.append(content)
        else:
            position, size = dice.randrange(MEGABYTE), dice.choice((0, 9, 30_000, 40_000, 300_000))
            client.send(slice_of(position, size, b"%d" % number))
            wanted.append(b"%d" % number + CONTENT[position : position + size])
    assert harness.receive(client, len(wanted)) == wanted


def test_a_slow_reader_holds_one_reply_and_takes_no_memory(harness: Harness) -> None:
    """The client requests 400 MB and reads nothing: the server stops reading from it, and serves others."""
    slow, quick = harness.client(receive_buffer_bytes=65_536), harness.client()
    requests = [slice_of(0, 3 * MEGABYTE)] * 130
    slow.send(*requests)
    harness.until(lambda: harness.loop.statistics().writing == 1)
    harness.turn(50)
    statistics = harness.loop.statistics()
    assert harness.broker.handled == 1
    assert statistics.pending_bytes < 3 * MEGABYTE + 100
    assert statistics.held_bytes <= len(requests) * 25
    assert harness.ask(quick, echo(b"x")) == b"x"
    assert harness.receive(slow, 3)[:3] == [b"head" + CONTENT[: 3 * MEGABYTE]] * 3


def test_a_slow_reader_holds_a_bounded_number_of_in_memory_replies(harness: Harness) -> None:
    slow = harness.client(receive_buffer_bytes=65_536)
    slow.send(*[b"B" + pack(">i", 50_000)] * 1000)
    harness.until(lambda: harness.loop.statistics().writing == 1)
    harness.turn(20)
    assert harness.loop.statistics().pending_bytes <= OUTPUT_BYTES_MAX + 50_004
    assert harness.broker.handled < 20
    assert [len(reply) for reply in harness.receive(slow, 1000)] == [50_000] * 1000


def test_a_connection_is_not_read_while_its_replies_are_not_taken(harness: Harness) -> None:
    slow = harness.client(receive_buffer_bytes=65_536)
    slow.send(slice_of(0, 4 * MEGABYTE))
    harness.until(lambda: harness.loop.statistics().writing == 1)
    before = harness.loop.statistics().bytes_in
    slow.send(*[echo(b"x" * 1000)] * 50)
    harness.turn(20)
    assert harness.loop.statistics().bytes_in == before
    replies = harness.receive(slow, 51)
    assert [len(reply) for reply in replies] == [4 * MEGABYTE + 4] + [1000] * 50


def test_a_slice_of_a_segment_that_is_deleted_meanwhile_is_sent_completely(harness: Harness) -> None:
    client = harness.client(receive_buffer_bytes=65_536)
    client.send(slice_of(0, 4 * MEGABYTE))
    harness.until(lambda: harness.loop.statistics().writing == 1)
    assert harness.loop.statistics().pinned_files == 1
    assert harness.broker.file is not None
    harness.broker.file.close()
    Path(harness.broker.file.path).unlink()
    assert harness.receive(client, 1) == [b"head" + CONTENT]
    assert harness.loop.statistics().pinned_files == 0


def test_a_slice_beyond_the_end_of_its_file_closes_only_its_connection(harness: Harness) -> None:
    client, other = harness.client(), harness.client()
    client.send(slice_of(4 * MEGABYTE - 100, 200_000))
    harness.until(lambda: harness.loop.statistics().closed == {"send failed": 1})
    assert harness.ask(other, echo(b"x")) == b"x"


def test_a_reader_that_disconnects_within_a_reply_leaves_no_state(harness: Harness) -> None:
    clients = [harness.client(receive_buffer_bytes=65_536) for _ in range(6)]
    for client in clients:
        client.send(slice_of(0, 4 * MEGABYTE))
    harness.until(lambda: harness.loop.statistics().writing == 6)
    for number, client in enumerate(clients):
        client.reset() if number % 2 else client.close()
    harness.until(lambda: harness.loop.statistics().connections == 0)
    statistics = harness.loop.statistics()
    assert (statistics.pinned_files, statistics.pending_bytes) == (0, 0)
    assert len(harness.broker.gone) == 6


def test_a_last_reply_is_sent_before_the_connection_is_closed(harness: Harness) -> None:
    client = harness.client(receive_buffer_bytes=65_536)
    content = b"x" * 3_000_000
    client.send(b"C" + content)
    assert harness.receive(client, 1) == [content]
    harness.until(client.is_closed)
    assert harness.loop.statistics().closed == {"asked": 1}


def test_requests_after_a_last_reply_are_not_handled(harness: Harness) -> None:
    client = harness.client()
    client.send(echo(b"a"), b"Cb", echo(b"c"))
    assert harness.receive(client, 2) == [b"a", b"b"]
    harness.until(client.is_closed)
    assert harness.broker.handled == 2


def test_a_throttled_connection_pauses_after_its_reply(harness: Harness) -> None:
    client, other = harness.client(), harness.client()
    client.send(b"T" + pack(">i", 500), echo(b"next"))
    assert harness.receive(client, 1) == [b""], "the reply itself is not delayed"
    client.send(echo(b"one more"))
    harness.turn(10)
    assert harness.broker.handled == 1
    assert harness.loop.statistics().throttled == 1
    assert harness.ask(other, echo(b"x")) == b"x"
    harness.timer_ms += 499
    harness.turn(5)
    assert client.replies_so_far() == []
    harness.timer_ms += 1
    assert harness.receive(client, 2) == [b"next", b"one more"]
    assert harness.loop.statistics().throttled == 0


def test_a_throttled_connection_that_closes_leaves_no_state(harness: Harness) -> None:
    client = harness.client()
    assert harness.ask(client, b"T" + pack(">i", 500)) == b""
    client.reset()
    harness.until(lambda: harness.loop.statistics().connections == 0)
    harness.timer_ms += 1000
    harness.turn(3)
    assert harness.loop.statistics().throttled == 0


def test_bytes_for_a_throttled_connection_do_not_wake_the_loop(harness: Harness) -> None:
    client = harness.client()
    assert harness.ask(client, b"T" + pack(">i", 500)) == b""
    client.send(echo(b"x"))
    harness.until(lambda: harness.loop.statistics().muted == 1)
    harness.timer_ms += 500
    assert harness.receive(client, 1) == [b"x"]
    assert harness.loop.statistics().muted == 0


def test_replies_of_many_megabytes_reach_many_readers(harness: Harness) -> None:
    clients = [harness.client() for _ in range(5)]
    for number, client in enumerate(clients):
        client.send(*[slice_of(number, 2 * MEGABYTE)] * 3)
    waiting: dict[Client, list[bytes]] = {client: [] for client in clients}

    def have_all() -> bool:
        for client, replies in waiting.items():
            replies += client.replies_so_far()
        return all(len(replies) == 3 for replies in waiting.values())

    harness.until(have_all)
    for number, client in enumerate(clients):
        assert waiting[client] == [b"head" + CONTENT[number : number + 2 * MEGABYTE]] * 3
