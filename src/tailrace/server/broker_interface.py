"""BrokerCore: the interface between server and broker.

The broker is a value that answers requests: it has no socket, no thread and no clock. The server gives it one frame of
a connection at a time, or a run of frames that the broker answers together. It takes the replies, which may be ready at
once or after a later call.

A frame is a view of memory that the server overwrites once no view is left. If the broker keeps a view, the bytes stay
unchanged and the memory is not reused. So a parked operation should release its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.metrics.families import Family
from tailrace.server.connections.endpoints import Endpoint
from tailrace.waiting.chore import Chore
from tailrace.waiting.outbox import Outbox

Handle: TypeAlias = Callable[[memoryview, ConnectionContext, int], bool]


class Observed(Protocol):
    """The state that the metrics endpoint shows besides metrics."""

    @property
    def internal_errors(self) -> InternalErrors:
        """Notes exceptions that the server survives."""

    def not_ready_reason(self) -> str | None:
        """Return why clients cannot be served now, or None if they can."""

    def describe_waiting(self, now_ms: int) -> dict[str, Any]:
        """Return the waiting requests, the fetch sessions and the share partitions."""

    def explain_fetch(self, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        """Do a fetch and pass its explanation to `answer`, now or later. Raise ValueError for an invalid query."""


class BrokerCore(Observed, Protocol):
    """The core, as `broker/broker.py` builds it."""

    @property
    def outbox(self) -> Outbox:
        """The requests of the broker to other nodes."""

    def handle(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        """Handle one frame (without its length prefix). Return True if the connection may send another frame before
        the replies are taken: these then include the reply to this one, in order."""

    def handle_guarded(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        """Like `handle`, for a connection whose client has to authenticate, and may have to re-authenticate."""

    def take_replies(self) -> Sequence[Reply]:
        """Return the replies since the last call."""

    def tick(self, now_ms: int) -> None:
        """Do everything that is due."""

    def next_deadline_ms(self) -> int | None:
        """Return when to tick next."""

    def metric_families(self, now_ms: int) -> Iterable[Family]:
        """Return the metrics. Families are taken one at a time, with other requests in between."""

    def connection_hold_off_ms(self, host: str, now_ms: int) -> int:
        """Count a new connection from an address. Return how long to delay it, or 0 (by a monotonic clock)."""

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        """Drop operations that wait for this connection."""

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """Call `ready`, now or later, when the broker may stop."""

    def close(self, now_ms: int) -> None:
        """Stop cleanly: write everything to disk, release all resources."""


class ServerFunctions(Protocol):
    """The server's functions that the builder of a broker may use."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The addresses of the listeners, with the bound ports."""

    @property
    def advertised(self) -> Sequence[Endpoint]:
        """The addresses for clients (advertised.listeners)."""

    @property
    def submit(self) -> Callable[[Chore], None]:
        """The function that runs a chore."""

    def is_turn_over(self) -> bool:
        """Return True if a request that can pause should do so, because other clients wait."""

    def call_soon(self, function: Callable[[], None]) -> bool:
        """Run a function on the loop, from any thread. Return False if the loop does not run."""


BrokerBuilder = Callable[[ServerFunctions], BrokerCore]
