"""Sender: sends the waiting replies of a connection, then closes, pauses or reads it, as the last reply requires."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.server.connections.connection import CLOSING, WAITING, Connection
from tailrace.server.connections.connections import Connections
from tailrace.server.loop.loop_timers import LoopTimers
from tailrace.server.loop.poll import READABLE, WRITABLE
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
        """`close` closes a connection for a reason; `lost` closes one after an exception."""
        self._connections = connections
        self._slices = slices
        self._meter = meter
        self._timers = timers
        self._close = close
        self._lost = lost

    def send(self, connection: Connection, time_ms: int) -> None:
        """Send what the socket takes; the rest waits until the socket is writable."""
        try:
            sent = connection.send(self._slices, time_ms)
        except Exception as error:
            self._lost(connection, "send failed", error)
            return
        self._meter.bytes_out += sent
        if connection.output.size:
            self._connections.want(connection, WRITABLE)
        else:
            self._meter.sent(connection)
            if connection.hold or connection.throttle_ms or connection.interest != READABLE:
                self.resume(connection, time_ms)

    def resume(self, connection: Connection, time_ms: int) -> None:
        """Close, pause or read a connection whose replies are all sent, as the last reply requires."""
        if connection.hold & CLOSING and not connection.hold & WAITING:
            self._close(connection, connection.end_reason)
            return
        if connection.throttle_ms:
            self._connections.pause(connection, time_ms + connection.take_pause())
            self._timers.recompute()
        self._connections.want(connection, READABLE)
