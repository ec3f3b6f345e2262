"""Connections: all open connections, the events they are registered for, their pauses and idle times."""

from __future__ import annotations

import heapq
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.model.log_fields import fields
from tailrace.server.broker_interface import BrokerCore, Handle
from tailrace.server.connections.connection import THROTTLED, WAITING, Connection
from tailrace.server.connections.listener import AcceptedSocket
from tailrace.server.connections.request_memory import RequestMemory
from tailrace.server.connections.slow_requests import SlowRequests
from tailrace.server.loop.poll import READABLE, Poll, forget
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.receiving.receive_buffers import FrameBuffers
from tailrace.server.sending.slice_sender import SliceSender
from tailrace.server.settings import ServerSettings
from tailrace.server.tls.tls_backlog import TlsBacklog

_LOGGER: Final = logging.getLogger("tailrace.connection")


PROOF_MS_MAX: Final = 30_000  # for TLS and authentication of a new client


class Connections:
    def __init__(self, poll: Poll, settings: ServerSettings, broker: BrokerCore, now_ms: int) -> None:
        self._poll = poll
        self._request_bytes_max = settings.request_bytes_max
        self._buffers = FrameBuffers()
        self._memory = RequestMemory(settings.queued_bytes_max, self._buffers)
        self._ids = count(1)
        self._handle = broker.handle
        self._handle_guarded = broker.handle_guarded
        self._guarded = settings.sasl_receive_bytes_max
        self._tls = settings.tls
        # (deadline, connection) of unauthenticated clients. The oldest is closed if they are more than half of all.
        self._unproven: deque[tuple[int, int]] = deque()
        self._unproven_max = max(min(settings.limits.connections_max, settings.descriptors.connections_max) // 2, 1)
        self.tls_backlog = TlsBacklog()
        self._idle_ms_max = settings.idle_ms_max
        self._sweep_ms = now_ms  # the next check for idle connections
        self._slow = SlowRequests(settings.idle_ms_max)
        self._pauses: list[tuple[int, int]] = []  # a heap of (end of the pause, connection id)
        self.by_id: dict[int, Connection] = {}
        self.by_descriptor: dict[int, Connection] = {}
        self.closed: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Connection]:
        """Iterate over a copy of the list, so that connections may be closed meanwhile."""
        return iter(list(self.by_id.values()))

    def add(self, accepted: AcceptedSocket, listener: str, now_ms: int) -> Connection:
        is_guarded = listener in self._guarded
        context = ConnectionContext(
            next(self._ids), listener, accepted.host, accepted.port, is_authenticated=not is_guarded
        )
        frames = FrameInput(self._guarded[listener] if is_guarded else self._request_bytes_max, self._buffers)
        connection = self._make(accepted, context, frames, now_ms)
        self._poll.register(connection.descriptor, READABLE)
        self.by_id[connection.id] = connection
        self.by_descriptor[connection.descriptor] = connection
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("connection accepted", extra=fields(client=connection.peer, listener=listener))
        return connection

    def _make(
        self, accepted: AcceptedSocket, context: ConnectionContext, frames: FrameInput, now_ms: int
    ) -> Connection:
        """Make a connection for its kind of listener."""
        handle: Handle = self._handle
        tls = self._tls.get(context.listener)
        if context.listener in self._guarded:
            handle = self._guarded_handle(frames)
        elif tls is None:
            return Connection(accepted.socket, context, frames, handle, now_ms)
        self._unproven.append((now_ms + PROOF_MS_MAX, context.connection_id))
        if tls is None:
            return Connection(accepted.socket, context, frames, handle, now_ms)
        from tailrace.server.tls.tls_connection import TlsConnection

        return TlsConnection(accepted, context, frames, handle, now_ms, tls=tls, tls_backlog=self.tls_backlog)

    def _guarded_handle(self, frames: FrameInput) -> Handle:
        """Return the handler for a client that has to authenticate before it may send large frames."""

        def handle(frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
            may_follow = self._handle_guarded(frame, context, now_ms)
            if context.is_authenticated:
                frames.allow(self._request_bytes_max)
            return may_follow

        return handle

    def remove(self, connection: Connection, reason: str, slices: SliceSender) -> None:
        """Close a connection and drop its work."""
        self.tls_backlog.discard(connection)
        del self.by_id[connection.id]
        del self.by_descriptor[connection.descriptor]
        forget(self._poll, connection.descriptor)
        connection.close(slices)
        self.closed[reason] += 1
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("connection closed", extra=fields(client=connection.peer, reason=reason))

    def want(self, connection: Connection, interest: int) -> None:
        """Register a connection for other events: reading, writing, or none."""
        connection.want(self._poll, interest)

    def pause(self, connection: Connection, until_ms: int) -> None:
        """Begin the pause of a throttled connection whose reply was sent."""
        heapq.heappush(self._pauses, (until_ms, connection.id))

    def put_off(self, connections: Iterable[Connection], now_ms: int) -> int:
        """Hold connections that have used their share until all others were served. Return when they may continue."""
        for connection in connections:
            connection.put_off()
            heapq.heappush(self._pauses, (now_ms, connection.id))
        return now_ms

    def take_rested(self, now_ms: int) -> list[Connection]:
        """Return the connections whose pause is over."""
        rested = []
        while self._pauses and self._pauses[0][0] <= now_ms:
            connection = self.by_id.get(heapq.heappop(self._pauses)[1])
            if connection is not None:
                connection.end_pause(now_ms)
                rested.append(connection)
        return rested

    def take_overdue(self, now_ms: int) -> list[tuple[Connection, str]]:
        """Return the connections to close, with the reason."""
        late = dict.fromkeys(self._take_unproven(now_ms), "unproven")
        if self._memory.is_due:
            late = dict.fromkeys(self._memory.take_excess(self.by_id.values()), "memory") | late
        return list((dict.fromkeys(self._take_idle(now_ms), "idle") | late).items())

    @property
    def has_excess(self) -> bool:
        """Return True if unfinished requests may take too much memory."""
        return self._memory.is_due

    def _take_idle(self, now_ms: int) -> list[Connection]:
        """Return idle connections, if a check is due. A connection that waits for the broker is not idle."""
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
        """Return the connections that did not authenticate in time."""
        late = []
        while self._unproven and (self._unproven[0][0] <= now_ms or len(self._unproven) > self._unproven_max):
            connection = self.by_id.get(self._unproven.popleft()[1])
            if connection is not None and not connection.is_authenticated:
                late.append(connection)
        return late

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of these connections, or None."""
        due_ms = [self._pauses[0][0]] if self._pauses else []
        if self._unproven:
            due_ms.append(0 if len(self._unproven) > self._unproven_max else self._unproven[0][0])
        if self.by_id and self._idle_ms_max > 0:
            due_ms.append(self._sweep_ms)
        return min(due_ms, default=None)
