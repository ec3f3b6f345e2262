"""Many clients send random requests, and each must get the expected replies."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.server.settings import ServerSettings, SliceStrategy
from tests.unit.server.fake_broker import FakeBroker
from tests.unit.server.harness import LOOPBACK, Client, Harness, framed

CONTENT = random.Random(7).randbytes(1 << 20)


class Talker:
    """A client, its unsent bytes, and the replies that it expects."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.unsent = bytearray()
        self.expected: deque[bytes] = deque()

    def order(self, dice: random.Random) -> None:
        content = dice.randbytes(dice.choice((0, 5, 200, 40_000)))
        kind = dice.choice("EEEWPSBNT")
        request, reply = {
            "E": lambda: (b"E" + content, content),
            "W": lambda: (b"W" + pack(">i", dice.randrange(300)) + content, content),
            "P": lambda: (b"P" + content, content),
            "S": lambda: self._slice(dice, content),
            "B": lambda: self._from_memory(dice.choice((10, 150_000))),
            "N": lambda: (b"N", None),
            "T": lambda: (b"T" + pack(">i", dice.randrange(100)), b""),
        }[kind]()
        self.unsent += framed(request)
        if reply is not None:
            self.expected.append(reply)

    def _slice(self, dice: random.Random, content: bytes) -> tuple[bytes, bytes]:
        position, size = dice.randrange(1000), dice.choice((0, 100, 32_769, 700_000))
        return b"S" + pack(">qi", position, size) + content, content + CONTENT[position : position + size]

    def _from_memory(self, size: int) -> tuple[bytes, bytes]:
        return b"B" + pack(">i", size), b"b" * size

    def talk(self, dice: random.Random) -> None:
        """Send some bytes, and sometimes read."""
        if self.unsent:
            self.client.socket.setblocking(False)
            try:
                sent = self.client.socket.send(self.unsent[: dice.choice((1, 100, 10_000, 10**6))])
                del self.unsent[:sent]
            except BlockingIOError:
                pass
        if dice.random() < 0.7:
            self.listen()

    def listen(self) -> None:
        for reply in self.client.replies_so_far():
            assert reply == self.expected.popleft()


@pytest.mark.parametrize("strategy", SliceStrategy)
@pytest.mark.parametrize("seed", range(int(os.environ.get("TAILRACE_SOAK_SEEDS", "4"))))
def test_every_client_gets_the_expected_replies_in_order(seed: int, strategy: SliceStrategy, tmp_path: Path) -> None:
    dice = random.Random(seed)
    (tmp_path / "segment").write_bytes(CONTENT)
    file = DiskFiles().open(str(tmp_path / "segment"), read_only=True)
    settings = ServerSettings(listeners=LOOPBACK, slices=strategy, send_buffer_bytes=65_536)
    with Harness(FakeBroker(file), settings) as harness:
        talkers = [Talker(harness.client(dice.choice((None, 8192)))) for _ in range(12)]
        actions: list[Callable[[], None]] = [
            lambda: dice.choice(talkers).order(dice),
            lambda: dice.choice(talkers).order(dice),
            lambda: dice.choice(talkers).talk(dice),
            lambda: dice.choice(talkers).talk(dice),
            lambda: dice.choice(talkers).talk(dice),
            harness.turn,
            harness.turn,
        ]
        for _ in range(3000):
            dice.choice(actions)()
            harness.clock_ms += dice.randrange(3)
            harness.timer_ms += dice.randrange(3)
            if dice.random() < 0.05:
                harness.broker.release()
            if dice.random() < 0.01:  # a client disconnects at a random moment, and another one connects
                index = dice.randrange(len(talkers))
                talkers[index].client.reset() if dice.random() < 0.5 else talkers[index].client.close()
                talkers[index] = Talker(harness.client(dice.choice((None, 8192))))

        def are_done() -> bool:
            for talker in talkers:
                talker.talk(dice)
                talker.listen()
            harness.broker.release()
            harness.clock_ms += 5
            harness.timer_ms += 5
            return not any(talker.unsent or talker.expected for talker in talkers)

        harness.until(are_done)
        harness.until(lambda: harness.loop.statistics().connections == len(talkers))
        statistics = harness.loop.statistics()
        assert (statistics.held_bytes, statistics.pending_bytes, statistics.pinned_files) == (0, 0, 0)
        assert (statistics.waiting, statistics.writing) == (0, 0)
        assert set(statistics.closed) <= {"end of stream", "reset"}
    file.close()
