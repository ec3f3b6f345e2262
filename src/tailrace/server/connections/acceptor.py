"""Acceptor: accepts connections from the listeners, within the limits of rate and number.

A listener at a limit leaves the poll until a connection is closed, or a rate allows the next one. If the process is
short of descriptors, the listener waits a second. Its clients wait in the backlog, and the loop does not spin. An
accepted socket that would take from the reserve for files (`descriptors.py`) is closed at once.

An address that exceeds its rate of connections does not delay others: its excess connections are accepted, held for the
time that the broker returns, and closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage
from tailrace.server.broker_interface import BrokerCore
from tailrace.server.connections.connection_limits import ConnectionLimits
from tailrace.server.connections.held_sockets import HeldSockets
from tailrace.server.connections.listener import AcceptedSocket, Listener
from tailrace.server.loop.poll import READABLE, Poll, forget

ACCEPTS_MAX: Final = 64  # in one pass, so that many new connections do not delay the open ones


class Acceptor:
    def __init__(
        self,
        listeners: Sequence[Listener],
        limits: ConnectionLimits,
        poll: Poll,
        log: LimitedLog,
        welcome: Callable[[AcceptedSocket, str, int], object],
        broker: BrokerCore,
    ) -> None:
        self._poll = poll
        self._limits = limits
        self._log = log
        self._welcome = welcome
        self._hold_off_ms = broker.connection_hold_off_ms
        self._held = HeldSockets(limits.held_max)
        self._open = {listener.descriptor: listener for listener in listeners}
        self._paused: dict[int, int | None] = {}  # descriptor → when to resume; None: when a connection is closed
        self.accepted = 0
        self.refused = 0

    def start(self) -> None:
        for descriptor, listener in self._open.items():
            listener.listen()
            self._poll.register(descriptor, READABLE)

    @property
    def paused(self) -> int:
        return len(self._paused)

    def owns(self, descriptor: int) -> bool:
        return descriptor in self._open

    def accept(self, descriptor: int, now_ms: int) -> None:
        """Accept clients that wait at a listener."""
        listener = self._open[descriptor]
        for _ in range(ACCEPTS_MAX):
            wait_ms = self._limits.wait_ms(listener.name, now_ms)
            if wait_ms or not self._limits.has_slot(listener.name):
                self._pause(descriptor, now_ms + wait_ms if wait_ms else None)
                return
            try:
                accepted = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if is_shortage(error):
                    self._wait_for_resources(descriptor, error.strerror, now_ms)
                    return
                continue  # the client has already disconnected
            self.accepted += 1
            if self._limits.is_reserved(accepted.socket.fileno()):
                self.refused += 1
                accepted.socket.close()
                self._wait_for_resources(descriptor, "the remaining descriptors are reserved for files", now_ms)
                return
            if hold_ms := self._hold_off_ms(accepted.host, now_ms):
                self.refused += 1
                self._held.hold(accepted.socket, now_ms + hold_ms)
                continue
            if self._limits.admit(listener.name, accepted.host, now_ms):
                try:
                    self._welcome(accepted, listener.name, now_ms)
                except OSError as error:
                    accepted.socket.close()
                    self._limits.leave(listener.name, accepted.host)
                    self._wait_for_resources(descriptor, error.strerror, now_ms)
                    return
                continue
            self.refused += 1
            accepted.socket.close()
            self._log.write(
                logging.WARNING,
                "refused",
                now_ms,
                "connection refused: its address has max.connections.per.ip connections",
                client=accepted.host,
            )

    def left(self, listener: str, host: str) -> None:
        """Note that a connection was closed, so that a slot may be free."""
        self._limits.leave(listener, host)
        if self._paused:
            self._resume(lambda until_ms: until_ms is None)

    def limits_changed(self) -> None:
        self._resume(lambda until_ms: True)

    def next_deadline_ms(self) -> int | None:
        deadlines = [*self._paused.values(), self._held.next_deadline_ms()]
        return min((until_ms for until_ms in deadlines if until_ms is not None), default=None)

    def tick(self, now_ms: int) -> None:
        self._held.close_due(now_ms)
        self._resume(lambda until_ms: until_ms is not None and until_ms <= now_ms)

    def close(self) -> None:
        """Stop accepting; refuse the connections in the backlog."""
        for descriptor, listener in self._open.items():
            forget(self._poll, descriptor)
            listener.close()
        self._open.clear()
        self._paused.clear()
        self._held.close()

    def _wait_for_resources(self, descriptor: int, reason: str | None, now_ms: int) -> None:
        message = "connections wait for free descriptors: raise ulimit -n or lower max.connections"
        self._log.write(logging.ERROR, "accept", now_ms, message, error=reason)
        self._pause(descriptor, now_ms + SHORTAGE_RETRY_MS)

    def _pause(self, descriptor: int, until_ms: int | None) -> None:
        self._poll.unregister(descriptor)
        self._paused[descriptor] = until_ms

    def _resume(self, is_due: Callable[[int | None], bool]) -> None:
        for descriptor in [descriptor for descriptor, until_ms in self._paused.items() if is_due(until_ms)]:
            del self._paused[descriptor]
            self._poll.register(descriptor, READABLE)
