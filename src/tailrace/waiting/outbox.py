"""Outbox: requests that this node sends to others, and how it hears of the answers. The core's side of it.

    outbox.send(Peer("metadata", host, port), FetchRequest(…), answered, failed)

`answered(response, now_ms)` or `failed(failure, now_ms)` is called once, later and never from within `send`; it may
send again at once. So whoever talks to another node is a plain object, and a test plays the network:

    for request in outbox.take_requests():
        request.answered(Response(…), now_ms)

The server sends what there is after every round (`server/peers/peers.py`): requests to one address on one channel share
a connection and go out in order, several before the first is answered. The version is the highest that both sides have,
within `at_least` and `at_most`. A peer answers the requests of a connection one after the other, so what may wait long
(a fetch) needs a channel of its own. A peer that cannot be reached is left alone for a while, longer each time:
`failed` is told, and what is sent to it again waits for that time to pass. Records in an answer are views of its
buffer, which nobody writes to again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from tailrace.protocol.message import Message

REQUEST_TIMEOUT_MS = 30_000


class Peer(NamedTuple):
    """Where requests go, and what for: connections are not shared between channels."""

    channel: str
    host: str
    port: int
    is_controller: bool = False  # one of the controllers, on their listener

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.channel})"


class Failure(Enum):
    """Why there is no answer. Only after UNREACHABLE and UNSUPPORTED it is known that the peer has not seen it."""

    UNREACHABLE = "the peer cannot be reached"
    LOST = "the connection was lost"
    TIMED_OUT = "there was no answer in time"
    UNSUPPORTED = "the peer has no version of this request that we have"
    UNREADABLE = "the answer cannot be read"


Answered: TypeAlias = Callable[[Any, int], None]
Failed: TypeAlias = Callable[[Failure, int], None]
AnswerReader: TypeAlias = Callable[[memoryview, int, int], Any]  # of a frame, from a position on, of this version


class OutgoingRequest:
    __slots__ = ("answered", "at_least", "at_most", "body", "failed", "peer", "read", "timeout_ms")

    def __init__(
        self,
        peer: Peer,
        body: Message,
        answered: Answered,
        failed: Failed,
        timeout_ms: int,
        at_least: int,
        at_most: int | None,
        read: AnswerReader | None = None,
    ) -> None:
        self.peer = peer
        self.body = body
        self.answered = answered
        self.failed = failed
        self.timeout_ms = timeout_ms
        self.at_least = at_least
        self.at_most = at_most
        self.read = read

    def __repr__(self) -> str:
        return f"<{self.body.SCHEMA.name} to {self.peer}>"


class Outbox:
    def __init__(self) -> None:
        self.waiting: list[OutgoingRequest] = []  # not taken yet
        self.unneeded: list[Peer] = []  # whose connections nobody will use again
        self._flush: Callable[[], object] = _do_nothing

    def send(
        self,
        peer: Peer,
        body: Message,
        answered: Answered,
        failed: Failed,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        at_least: int = 0,
        at_most: int | None = None,
        read: AnswerReader | None = None,
    ) -> None:
        """Send a request; it has to be answered in time from now on, waiting included. `read`: how its answer is read,
        where its sender knows a shorter way."""
        self.waiting.append(OutgoingRequest(peer, body, answered, failed, timeout_ms, at_least, at_most, read))

    def flush(self) -> None:
        """Send the waiting requests now, not after the running callback. Without a network this does nothing."""
        self._flush()

    def on_flush(self, send: Callable[[], object]) -> None:
        """Have `flush` call `send`, which takes the waiting requests."""
        self._flush = send

    def leave(self, peer: Peer) -> None:
        """Nothing more will be sent there: its connection is closed. What was sent and not answered has failed."""
        self.unneeded.append(peer)

    def take_requests(self) -> list[OutgoingRequest]:
        taken, self.waiting = self.waiting, []
        return taken

    def take_unneeded(self) -> list[Peer]:
        taken, self.unneeded = self.unneeded, []
        return taken


def _do_nothing() -> None:
    pass
