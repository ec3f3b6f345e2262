"""Connections: those that are open, what each is registered for, and their pauses and idle times."""

from __future__ import annotations

import heapq
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import count
from select import EPOLLIN, epoll
from typing import Final

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.model.log_fields import fields
from tailrace.server.broker_seam import BrokerCore, Handle
from tailrace.server.connections.connection import CLOSING, THROTTLED, WAITING, Connection
from tailrace.server.connections.listener import Accepted
from tailrace.server.connections.request_memory import RequestMemory
from tailrace.server.connections.slow_requests import SlowRequests
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.receiving.receive_buffers import FrameBuffers
from tailrace.server.sending.slice_sender import SliceSender
from tailrace.server.settings import ServerSettings
from tailrace.server.tls.undecrypted import Undecrypted

_LOGGER: Final = logging.getLogger("tailrace.connection")


PROOF_MS_MAX: Final = 30_000  # how long a client may take for TLS and for saying who it is


class Connections:
    def __init__(self, poll: epoll, settings: ServerSettings, broker: BrokerCore, now_ms: int) -> None:
        self._poll = poll
        self._request_bytes_max = settings.request_bytes_max
        self._buffers = FrameBuffers()
        self._memory = RequestMemory(settings.queued_bytes_max, self._buffers)
        self._ids = count(1)
        self._handle = broker.handle
        self._handle_guarded = broker.handle_guarded
        self._guarded = settings.guarded
        self._tls = settings.tls
        # Until when a connection has to be proven, and which. The oldest goes if more than half of all are unproven.
        self._unproven: deque[tuple[int, int]] = deque()
        self._unproven_max = max(min(settings.limits.connections_max, settings.descriptors.connections_max) // 2, 1)
        self.undecrypted = Undecrypted()
        self._idle_ms_max = settings.idle_ms_max
        self._sweep_ms = now_ms  # when to look for idle ones next
        self._slow = SlowRequests(settings.idle_ms_max)
        self._pauses: list[tuple[int, int]] = []  # a heap: when a pause ends, whose it is
        self.by_id: dict[int, Connection] = {}
        self.by_descriptor: dict[int, Connection] = {}
        self.closed: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Connection]:
        """A copy of the list, so that connections may be closed on the way."""
        return iter(list(self.by_id.values()))

    def add(self, accepted: Accepted, listener: str, now_ms: int) -> Connection:
        context = ConnectionContext(next(self._ids), listener, accepted.host, accepted.port)
        frames = FrameInput(self._request_bytes_max, self._buffers)
        connection = self._make(accepted, context, frames, now_ms)
        self._poll.register(connection.descriptor, EPOLLIN)
        self.by_id[connection.id] = connection
        self.by_descriptor[connection.descriptor] = connection
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("connection accepted", extra=fields(client=connection.peer, listener=listener))
        return connection

    def _make(self, accepted: Accepted, context: ConnectionContext, frames: FrameInput, now_ms: int) -> Connection:
        """A connection as its listener has them."""
        handle: Handle = self._handle
        tls = self._tls.get(context.listener)
        if context.listener in self._guarded:
            handle = self._guarded_handle(context, frames)
        elif tls is None:
            return Connection(accepted.socket, context, frames, handle, now_ms)
        self._unproven.append((now_ms + PROOF_MS_MAX, context.connection_id))
        if tls is None:
            return Connection(accepted.socket, context, frames, handle, now_ms)
        from tailrace.server.tls.tls_connection import TlsConnection

        return TlsConnection(accepted, context, frames, handle, now_ms, tls=tls, undecrypted=self.undecrypted)

    def _guarded_handle(self, context: ConnectionContext, frames: FrameInput) -> Handle:
        """For a client that has to say who it is, and before that may send only so much."""
        context.is_authenticated = False
        frames.limit = self._guarded[context.listener]

        def handle(frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
            may_follow = self._handle_guarded(frame, context, now_ms)
            if context.is_authenticated:
                frames.limit = self._request_bytes_max
            return may_follow

        return handle

    def remove(self, connection: Connection, reason: str, slices: SliceSender) -> None:
        """Close it; nothing more is done for it."""
        self.undecrypted.discard(connection)
        del self.by_id[connection.id]
        del self.by_descriptor[connection.descriptor]
        connection.hold = CLOSING
        connection.is_unsent = False
        connection.output.clear(slices)
        # Closing the only descriptor of a socket takes it out of the poll.
        connection.socket.close()
        self.closed[reason] += 1
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("connection closed", extra=fields(client=connection.peer, reason=reason))

    def want(self, connection: Connection, interest: int) -> None:
        """Register it for something else: reading, writing, or nothing."""
        if connection.interest != interest:
            self._poll.modify(connection.descriptor, interest)
            connection.interest = interest

    def pause(self, connection: Connection, until_ms: int) -> None:
        """A throttled connection has been sent its reply: its pause begins."""
        heapq.heappush(self._pauses, (until_ms, connection.id))

    def put_off(self, connections: Iterable[Connection], now_ms: int) -> int:
        """They have more to ask, and have had their share: they go on after all others. When that is."""
        for connection in connections:
            connection.hold |= THROTTLED
            heapq.heappush(self._pauses, (now_ms, connection.id))
        return now_ms

    def take_rested(self, now_ms: int) -> list[Connection]:
        """Those whose pause is over."""
        rested = []
        while self._pauses and self._pauses[0][0] <= now_ms:
            connection = self.by_id.get(heapq.heappop(self._pauses)[1])
            if connection is not None:
                connection.hold &= ~THROTTLED
                connection.active_ms = now_ms  # it was not silent of its own accord
                rested.append(connection)
        return rested

    def take_overdue(self, now_ms: int) -> list[tuple[Connection, str]]:
        """Those whose time is up, and why."""
        late = dict.fromkeys(self._take_unproven(now_ms), "unproven")
        if self._memory.is_due:
            late = dict.fromkeys(self._memory.take_excess(self.by_id.values()), "memory") | late
        return list((dict.fromkeys(self._take_idle(now_ms), "idle") | late).items())

    @property
    def has_excess(self) -> bool:
        """Return True if unfinished requests may take too much memory."""
        return self._memory.is_due

    def _take_idle(self, now_ms: int) -> list[Connection]:
        """Those that have been silent for too long, if it is time to look. One that waits for us is not silent."""
        if self._idle_ms_max <= 0 or now_ms < self._sweep_ms:
            return []
        self._sweep_ms = now_ms + max(self._idle_ms_max // 10, 1)
        since_ms = now_ms - self._idle_ms_max
        slow = self._slow.take(self.by_id.values(), now_ms)
        return [
            connection
            for connection in self.by_id.values()
            if (connection.active_ms <= since_ms or connection.id in slow)
            and not connection.hold & (WAITING | THROTTLED)
        ]

    def _take_unproven(self, now_ms: int) -> list[Connection]:
        """Those that have taken too long to say who they are."""
        late = []
        while self._unproven and (self._unproven[0][0] <= now_ms or len(self._unproven) > self._unproven_max):
            connection = self.by_id.get(self._unproven.popleft()[1])
            if connection is not None and not connection.is_proven:
                late.append(connection)
        return late

    def next_deadline_ms(self) -> int | None:
        """When one of these has something to do."""
        due_ms = [self._pauses[0][0]] if self._pauses else []
        if self._unproven:
            due_ms.append(0 if len(self._unproven) > self._unproven_max else self._unproven[0][0])
        if self.by_id and self._idle_ms_max > 0:
            due_ms.append(self._sweep_ms)
        return min(due_ms, default=None)
