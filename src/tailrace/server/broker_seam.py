"""BrokerCore: what the server asks of the broker, and what it gives it.

The broker is a value that answers requests: it knows no socket, no thread and no clock. The server hands over one
frame of a connection at a time, or a run of them that the broker answers together, and takes the replies, which may
come at once or after a later call.

A frame is a view of memory that the server writes to again once nobody holds the view. What is kept of it stays as it
was, at the price of that memory: an operation that is parked should let go of its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.metrics.families import Family
from tailrace.server.connections.endpoints import Endpoint
from tailrace.waiting.outbox import Outbox

Handle: TypeAlias = Callable[[memoryview, ConnectionContext, int], bool]


class BrokerCore(Protocol):
    """The core, as `broker/broker.py` builds it."""

    @property
    def outbox(self) -> Outbox:
        """What the broker sends to other nodes."""

    @property
    def internal_errors(self) -> InternalErrors:
        """Takes exceptions that the server survives."""

    def handle(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        """Handle one frame (without its length prefix). Return True if the connection may send another before the
        replies are taken: the reply to this one is among them then, and those of the connection are in order."""

    def handle_guarded(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        """Like `handle`, for a connection whose client has to authenticate, and may have to re-authenticate."""

    def take_replies(self) -> Sequence[Reply]:
        """Return the replies since the last call."""

    def tick(self, now_ms: int) -> None:
        """Do what is due."""

    def next_deadline_ms(self) -> int | None:
        """Return when to tick next."""

    def metric_families(self, now_ms: int) -> Iterable[Family]:
        """Return the metrics. Families are taken one at a time, with other requests in between."""

    def connection_hold_off_ms(self, host: str, now_ms: int) -> int:
        """Count a connection of an address (by a monotonic clock). Return how long to hold it off; 0: not at all."""

    def explain_fetch(self, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        """Carry out a fetch and explain it, now or later. Raise ValueError for an invalid query."""

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        """Drop what waits for this connection."""

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """Call `ready`, now or later, when the broker may stop."""

    def close(self, now_ms: int) -> None:
        """Stop cleanly: everything is durable, all resources are released."""


class Chore(Protocol):
    """Work that takes long, such as an fsync or a compaction: run on a worker thread, applied on the loop."""

    def run(self) -> Any:
        """On a worker thread: the work. It must not touch what the broker may change meanwhile."""

    def apply(self, result: Any, now_ms: int) -> None:
        """On the loop: what the result means."""

    def failed(self, error: BaseException, now_ms: int) -> None:
        """On the loop, instead of `apply`, if `run` raised."""


class Surroundings(Protocol):
    """What the builder of a broker may use of the server it will live in."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Where the server listens, with the ports it was given."""

    @property
    def advertised(self) -> Sequence[Endpoint]:
        """What clients are told to connect to."""

    @property
    def submit(self) -> Callable[[Chore], None]:
        """Run a chore."""

    def is_turn_over(self) -> bool:
        """Return True if a request that can pause should do so, because other clients wait."""

    def call_soon(self, function: Callable[[], None]) -> bool:
        """From any thread: run a function on the loop; False if there is no loop yet, or no more."""


BrokerBuilder = Callable[[Surroundings], BrokerCore]
