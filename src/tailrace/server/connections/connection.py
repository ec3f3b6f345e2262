"""Connection: one client, between its socket and the broker.

A connection hands over one request at a time. The next one goes to the broker after the reply to the last was taken,
unless the broker answers both with the next replies, in order. So replies leave in the order of their requests, and
waiting needs no queue.

A connection is held for one or more of five reasons. While it is held, no request is read from it or handed over:

    WAITING    the broker has requests of it
    WRITING    the socket did not take all of the last replies
    THROTTLED  a quota was exceeded and the connection has to pause
    CLOSING    it will be closed once its last reply is sent
    HANDSHAKE  TLS is not agreed yet

Reading is stopped lazily: a held connection stays registered for reading until bytes arrive, since most clients wait
for their reply anyway. A client can make the server hold at most one request, one read (64 KB), and one reply beyond
`OUTPUT_BYTES_MAX`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING, Final

from tailrace.broker.requests.request_context import ConnectionContext, Part
from tailrace.server.loop.poll import READABLE, Poll
from tailrace.server.metrics.api_meter import ApiMeter, RequestTimes
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.receiving.receive_buffers import ReceiveArena
from tailrace.server.sending.response_writer import ResponseWriter, Stream
from tailrace.server.sending.slice_sender import SliceSender

if TYPE_CHECKING:
    from tailrace.server.broker_interface import Handle

WAITING: Final = 1
WRITING: Final = 2
THROTTLED: Final = 4
CLOSING: Final = 8
HANDSHAKE: Final = 16

OUTPUT_BYTES_MAX: Final = 131_072  # with more unsent bytes, no further request of the connection is handed over


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
        self.handle = handle  # the function that gets its requests
        self.context = context
        self.input = frames
        self.output: ResponseWriter = ResponseWriter()
        self.hold = 0
        self.pending = 0  # number of replies that the broker has not returned yet
        self.end_reason = "asked"  # the reason for closing, once its last reply is sent
        self.interest = READABLE  # the events it is registered for
        self.is_unsent = False  # the present pass has to send to it
        self.throttle_ms = 0  # the pause after its reply is sent
        self.active_ms = now_ms  # when bytes last moved
        # For the meter: the times of requests at the broker, and of replies that are not sent.
        self.metered: deque[RequestTimes] = deque()
        self.unsent: list[tuple[ApiMeter, int, int]] = []

    @property
    def is_authenticated(self) -> bool:
        """True if the client has authenticated, or need not."""
        return self.context.is_authenticated

    def shake_hands(self) -> None:
        """Continue the TLS handshake, which a connection without TLS does not have."""

    # Requests and replies

    def receive(self, arena: ReceiveArena, time_ms: int) -> int:
        """Read once. Return the number of bytes, 0 at the end of the stream."""
        size = self.input.receive(self.recv_into, arena)
        self.active_ms = time_ms
        return size

    def begin_request(self) -> None:
        """Note that the broker gets a request."""
        self.hold = WAITING
        self.pending += 1

    def fail_request(self, reason: str) -> None:
        """Note that the broker will not reply to the last request. The connection closes after the earlier replies."""
        self.pending -= 1
        self.close_after_replies(reason)

    def take_reply(self, throttle_ms: int, close: bool) -> None:
        """Note that the broker has replied to the oldest request."""
        self.pending -= 1
        if not self.pending:
            self.hold ^= WAITING
        if throttle_ms > 0:
            self.throttle_ms = throttle_ms
            self.hold |= THROTTLED
        if close:
            self.hold |= CLOSING

    def queue(self, parts: list[Part]) -> bool:
        """Queue a reply. Return True if the connection was not yet among those that the present pass sends to."""
        self.output.add(parts)
        was_unsent, self.is_unsent = self.is_unsent, True
        return not was_unsent

    def send(self, slices: SliceSender, time_ms: int) -> int:
        """Send what the socket takes of the replies. Return the number of bytes."""
        self.is_unsent = False
        sent = self.output.send(self.socket, slices)
        if sent:
            self.active_ms = time_ms
        if self.output.size:
            self.hold |= WRITING
        else:
            self.hold &= ~WRITING
        return sent

    # Pauses

    def take_pause(self) -> int:
        """Return the length of the pause that begins now, in milliseconds."""
        throttle_ms, self.throttle_ms = self.throttle_ms, 0
        return throttle_ms

    def put_off(self) -> None:
        """Hold the connection until `end_pause`, without a throttled reply."""
        self.hold |= THROTTLED

    def end_pause(self, now_ms: int) -> None:
        self.hold &= ~THROTTLED
        self.active_ms = now_ms  # it could not send while it was paused

    # Events and the end

    def want(self, poll: Poll, interest: int) -> None:
        """Register for other events: reading, writing, or none."""
        if self.interest != interest:
            poll.modify(self.descriptor, interest)
            self.interest = interest

    def drain(self) -> None:
        """Take no further request, and close after the replies that are due."""
        self.hold |= CLOSING

    def close_after_replies(self, reason: str) -> None:
        """Hand over no further frame, and close after the replies to the requests so far."""
        self.hold = CLOSING | WAITING if self.pending else CLOSING
        self.end_reason = reason

    def close(self, slices: SliceSender) -> None:
        self.hold = CLOSING
        self.is_unsent = False
        self.output.clear(slices)
        self.socket.close()

    @property
    def peer(self) -> str:
        return f"{self.context.client_host}:{self.context.client_port}"
