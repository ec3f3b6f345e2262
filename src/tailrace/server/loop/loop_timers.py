"""LoopTimers: the deadlines of the loop, besides the broker's own."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.server.connections.acceptor import Acceptor
from tailrace.server.connections.connections import Connections
from tailrace.server.http.metrics_endpoint import MetricsEndpoint
from tailrace.server.loop.garbage import FullCollection
from tailrace.server.peers.peers import Peers


class LoopTimers:
    """Deadlines in the time of the monotonic clock, which cannot be set back."""

    __slots__ = ("_connections", "_deadlines", "_due_ms", "_peers_due_ms", "drain_until_ms")

    def __init__(
        self,
        connections: Connections,
        acceptor: Acceptor,
        metrics: MetricsEndpoint,
        peers: Peers,
        garbage: FullCollection | None,
    ) -> None:
        self._connections = connections
        self._deadlines: tuple[Callable[[], int | None], ...] = (
            connections.next_deadline_ms,
            acceptor.next_deadline_ms,
            metrics.next_deadline_ms,
            *(() if garbage is None else (garbage.next_deadline_ms,)),
        )
        self._peers_due_ms = peers.next_deadline_ms
        self._due_ms: int | None = None  # without the peers' deadline
        self.drain_until_ms: int | None = None  # when a drain ends even with pending replies; None: not draining

    def begin_drain(self, until_ms: int) -> None:
        """Begin a drain that ends at `until_ms`, even with pending replies."""
        self.drain_until_ms = until_ms

    def recompute(self) -> None:
        """Compute the earliest deadline again."""
        due = [next_deadline_ms() for next_deadline_ms in self._deadlines]
        self._due_ms = min((ms for ms in (*due, self.drain_until_ms) if ms is not None), default=None)

    def set(self, due_ms: int) -> None:
        self._due_ms = due_ms

    def first_ms(self) -> int | None:
        if self._connections.has_excess:
            return 0
        own_ms, peers_ms = self._due_ms, self._peers_due_ms()
        return peers_ms if own_ms is None or (peers_ms is not None and peers_ms < own_ms) else own_ms
