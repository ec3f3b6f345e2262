"""Sender: sends the replies that wait at a connection, and does what the last of them asks: close, pause or read on."""

from __future__ import annotations

from collections.abc import Callable
from select import EPOLLIN, EPOLLOUT

from tailrace.server.connections.connection import CLOSING, WAITING, WRITING, Connection
from tailrace.server.connections.connections import Connections
from tailrace.server.loop.loop_timers import LoopTimers
from tailrace.server.metrics.request_meter import RequestMeter
from tailrace.server.sending.slice_sender import SliceSender


class Sender:
    def __init__(
        self,
        connections: Connections,
        slices: SliceSender,
        meter: RequestMeter,
        timers: LoopTimers,
        close: Callable[[Connection, str], None],
        lost: Callable[[Connection, str, Exception], None],
    ) -> None:
        """`close` closes a connection for a reason; `lost` closes one that an exception has made useless."""
        self._connections = connections
        self._slices = slices
        self._meter = meter
        self._timers = timers
        self._close = close
        self._lost = lost

    def send(self, connection: Connection, time_ms: int) -> None:
        """Send what the socket takes; the rest waits until it can be written."""
        connection.is_unsent = False
        output = connection.output
        try:
            sent = output.send(connection.socket, self._slices)
        except Exception as error:
            self._lost(connection, "send failed", error)
            return
        if sent:
            self._meter.bytes_out += sent
            connection.active_ms = time_ms
        if output.size:
            connection.hold |= WRITING
            self._connections.want(connection, EPOLLOUT)
        else:
            self._meter.sent(connection)
            connection.hold &= ~WRITING
            if connection.hold or connection.throttle_ms or connection.interest != EPOLLIN:
                self.go_on(connection, time_ms)

    def go_on(self, connection: Connection, time_ms: int) -> None:
        """Everything is sent: close, pause or read, as the last reply asks."""
        if connection.hold & CLOSING and not connection.hold & WAITING:
            self._close(connection, connection.end_reason)
            return
        if connection.throttle_ms:
            self._connections.pause(connection, time_ms + connection.throttle_ms)
            connection.throttle_ms = 0
            self._timers.look_again()
        self._connections.want(connection, EPOLLIN)
