"""Connection: one client, between its socket and the broker.

A connection hands over one request at a time: the next one goes to the broker after the reply to the last was taken,
unless the broker says that it answers both with the next replies, in order. So replies leave in the order of their
requests, and waiting needs no queue.

It is held while there is a reason, and while it is held nothing is read from it and nothing of it is handed over:

    WAITING    requests of it are with the broker
    WRITING    the socket did not take all of the last replies
    THROTTLED  a quota was exceeded and it has to pause
    CLOSING    it will be closed once its last reply is sent

Reading is stopped lazily: a held connection stays registered for reading until bytes come, since most clients wait for
their reply anyway. What a client can make the server hold is bounded by one request, one read (64 KB), and one reply
beyond `OUTPUT_BYTES_MAX`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from select import EPOLLIN
from socket import socket
from typing import TYPE_CHECKING, Final

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.server.metrics.api_meter import ApiMeter, RequestTimes
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.sending.response_writer import ResponseWriter, Stream

if TYPE_CHECKING:
    from tailrace.server.broker_seam import Handle

WAITING: Final = 1
WRITING: Final = 2
THROTTLED: Final = 4
CLOSING: Final = 8

OUTPUT_BYTES_MAX: Final = 131_072  # with more than this unsent, no further request of a connection is handed over


class Connection:
    __slots__ = (
        "active_ms",
        "context",
        "descriptor",
        "end_reason",
        "handle",
        "hold",
        "id",
        "input",
        "interest",
        "is_unsent",
        "metered",
        "output",
        "pending",
        "recv_into",
        "socket",
        "throttle_ms",
        "unsent",
    )

    def __init__(
        self, client: socket, context: ConnectionContext, frames: FrameInput, handle: Handle, now_ms: int
    ) -> None:
        self.id = context.connection_id
        self.socket: Stream = client
        self.descriptor = client.fileno()
        self.recv_into: Callable[[memoryview], int] = client.recv_into
        self.handle = handle  # whom its requests go to
        self.context = context
        self.input = frames
        self.output: ResponseWriter = ResponseWriter()
        self.hold = 0
        self.pending = 0  # how many replies the broker owes
        self.end_reason = "asked"  # why it is closed, once its last reply is sent
        self.interest = EPOLLIN  # what it is registered for
        self.is_unsent = False  # it is among those that the pass has to send to
        self.throttle_ms = 0  # how long it has to pause once its reply is sent
        self.active_ms = now_ms  # when bytes last moved
        # The meter's: requests at the broker, and replies that are not sent, of which it has the time.
        self.metered: deque[RequestTimes] = deque()
        self.unsent: list[tuple[ApiMeter, int, int]] = []

    @property
    def is_proven(self) -> bool:
        """Whether the client has said who it is, where it has to."""
        return self.context.is_authenticated

    @property
    def peer(self) -> str:
        return f"{self.context.client_host}:{self.context.client_port}"
