"""Outbox: requests that this node sends to other nodes, and the callbacks for their responses.

    outbox.send(Peer("metadata", host, port), FetchRequest(…), answered, failed)

Either `answered(response, now_ms)` or `failed(failure, now_ms)` is called once, later and never from within `send`. The
callback may send again at once. Code that talks to another node is therefore a plain object, and a test can play the
network:

    for request in outbox.take_requests():
        request.answered(Response(…), now_ms)

The server sends the requests after every round (`server/peers/peers.py`). Requests to one address on one channel share
a connection and are pipelined in order. The version is the highest that both sides support, within `version_min` and
`version_max`. A peer answers the requests of a connection one after the other, so a request that may wait long (a
fetch) needs its own channel.

If a peer cannot be reached, `failed` is called, and later requests to it wait for a backoff time that grows with each
attempt. Records in a response are views of its buffer, which is not written to again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from tailrace.protocol.message import Message

REQUEST_TIMEOUT_MS = 30_000


class Peer(NamedTuple):
    """The address and the channel of a request. Connections are not shared between channels."""

    channel: str
    host: str
    port: int
    is_controller: bool = False  # a controller, addressed at its controller listener

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.channel})"


class Failure(Enum):
    """The reason why there is no response. Only UNREACHABLE and UNSUPPORTED guarantee that the peer has not seen the
    request."""

    UNREACHABLE = "the peer cannot be reached"
    LOST = "the connection was lost"
    TIMED_OUT = "there was no response in time"
    UNSUPPORTED = "the peer has no version of this request that this node supports"
    UNREADABLE = "the response cannot be decoded"


Answered: TypeAlias = Callable[[Any, int], None]
Failed: TypeAlias = Callable[[Failure, int], None]
AnswerReader: TypeAlias = Callable[[memoryview, int, int], Any]  # arguments: frame, start position, version


class OutgoingRequest:
    __slots__ = ("answered", "body", "failed", "peer", "read", "timeout_ms", "version_max", "version_min")

    def __init__(
        self,
        peer: Peer,
        body: Message,
        answered: Answered,
        failed: Failed,
        timeout_ms: int,
        version_min: int,
        version_max: int | None,
        read: AnswerReader | None = None,
    ) -> None:
        self.peer = peer
        self.body = body
        self.answered = answered
        self.failed = failed
        self.timeout_ms = timeout_ms
        self.version_min = version_min
        self.version_max = version_max
        self.read = read

    def __repr__(self) -> str:
        return f"<{self.body.SCHEMA.name} to {self.peer}>"


class Outbox:
    def __init__(self) -> None:
        self.waiting: list[OutgoingRequest] = []  # not taken yet
        self.unneeded: list[Peer] = []  # peers whose connections are to be closed
        self._flush: Callable[[], object] = _do_nothing

    def send(
        self,
        peer: Peer,
        body: Message,
        answered: Answered,
        failed: Failed,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        version_min: int = 0,
        version_max: int | None = None,
        read: AnswerReader | None = None,
    ) -> None:
        """Send a request. The timeout starts now and includes the time in the outbox. `read` decodes the response in
        place of the message's own reader."""
        self.waiting.append(OutgoingRequest(peer, body, answered, failed, timeout_ms, version_min, version_max, read))

    def flush(self) -> None:
        """Send the waiting requests now, not after the running callback. Without a network this does nothing."""
        self._flush()

    def on_flush(self, send: Callable[[], object]) -> None:
        """Have `flush` call `send`, which takes the waiting requests."""
        self._flush = send

    def disconnect(self, peer: Peer) -> None:
        """Close the connection to a peer. Its unanswered requests fail."""
        self.unneeded.append(peer)

    def take_requests(self) -> list[OutgoingRequest]:
        taken, self.waiting = self.waiting, []
        return taken

    def take_unneeded(self) -> list[Peer]:
        taken, self.unneeded = self.unneeded, []
        return taken


def _do_nothing() -> None:
    pass
