"""Broker: requests in, replies out. Nothing here knows a socket, a thread or a clock.

    handle(frame, context, now_ms)    handle a client's request; the reply is ready at once or later
    tick(now_ms)                      expire deadlines and run the housekeeping that is due
    take_replies()                    return the replies to send

The server calls only this class (`server/broker_interface.py`). The dispatcher and the services, which `startup/`
builds, do the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tailrace.broker.dispatcher import Dispatcher
from tailrace.broker.handling.timed_parts import TimedParts
from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.broker.security.guard import SaslGuard
from tailrace.broker.services import Services
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.metrics.families import Family
from tailrace.model.ids import BrokerId
from tailrace.protocol.primitives import Buffer
from tailrace.waiting.outbox import Outbox

if TYPE_CHECKING:  # few nodes are controllers of others, and the import would slow down every start
    from tailrace.broker.cluster.controller_listener import ControllerListener

Handle: TypeAlias = Callable[[memoryview, ConnectionContext, int], bool]


class Broker:
    def __init__(
        self,
        services: Services,
        dispatcher: Dispatcher,
        guard: SaslGuard | None,
        timed_parts: TimedParts,
        controller_listener: ControllerListener | None = None,
    ) -> None:
        """`guard` is None if no listener authenticates its clients. `controller_listener` gets the requests of
        other brokers to this node as their controller."""
        self.services = services
        self.dispatcher = dispatcher
        self.guard = guard
        self._timed_parts = timed_parts
        self._controller_listener = controller_listener
        self._controller_listeners = {one.name for one in services.config.controller_listeners}
        self.handle: Callable[[Buffer, ConnectionContext, int], bool] = (
            dispatcher.handle if controller_listener is None else self._handle_by_listener
        )
        self.take_replies: Callable[[], list[Reply]] = services.replies.take_replies

    @property
    def outbox(self) -> Outbox:
        """The requests to other nodes."""
        return self.services.outbox

    @property
    def internal_errors(self) -> InternalErrors:
        return self.services.internal_errors

    def _handle_by_listener(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        if context.listener in self._controller_listeners:
            assert self._controller_listener is not None
            return self._controller_listener.handle(frame, context, now_ms)
        return self.dispatcher.handle(frame, context, now_ms)

    def handle_guarded(
        self, frame: memoryview, context: ConnectionContext, now_ms: int, pass_on: Handle | None = None
    ) -> bool:
        """Like `handle`, for a connection whose client has to authenticate.

        `pass_on` gets the requests of authenticated clients. By default it is `handle`.
        """
        guard = self.guard
        if self._controller_listener is not None and context.listener in self._controller_listeners:
            guard = self._controller_listener.guard
        assert guard is not None, "no listener authenticates its clients"
        return guard.handle(frame, context, now_ms, pass_on or self.handle)

    # Time

    def tick(self, now_ms: int) -> None:
        """Do the work that is due."""
        self.services.current_round.carry_out()
        self._timed_parts.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when to tick next."""
        return self._timed_parts.next_deadline_ms()

    def broker_ended(self, broker_id: BrokerId, now_ms: int) -> None:
        """Note that the process of another broker has ended, if this node is its controller."""
        if self.services.local_controller is not None:
            self.services.local_controller.brokers.broker_ended(broker_id, now_ms)

    # Connections

    def connection_hold_off_ms(self, host: str, now_ms: int) -> int:
        """Count a new connection from an address. Return how long to delay it, or 0 if it is within the quota."""
        quota = self.services.throttling.connection
        return quota.record(host, now_ms) if quota.is_enabled else 0

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        """Cancel the pending work of a client that has disconnected. Changes that it has made stay."""
        services = self.services
        services.throttling.forget(connection_id)
        services.long_requests.connection_closed(connection_id)
        services.chores.connection_closed(connection_id)
        services.request_work.connection_closed(connection_id)
        self.dispatcher.connection_closed(connection_id)
        services.replies.connection_closed(connection_id)
        services.shares.connection_closed(connection_id, now_ms)

    # Observation

    def metric_families(self, now_ms: int) -> Iterator[Family]:
        """Yield the metrics. The caller may do other work between two families."""
        from tailrace.broker.metrics.broker_metrics import broker_families

        return broker_families(self.services, now_ms)

    def not_ready_reason(self) -> str | None:
        """Return why this broker cannot serve clients now, or None if it can."""
        return self.services.controller.not_ready_reason()

    def explain_fetch(self, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        """Do a fetch and pass its explanation to `answer`, now or after the fetch has waited.

        Raise ValueError for an invalid query.
        """
        from tailrace.broker.requests.data.fetch_explanation import start_explained_fetch

        start_explained_fetch(self.services.fetches, query, now_ms, answer)

    def describe_waiting(self, now_ms: int) -> dict[str, Any]:
        """Return waiting requests, fetch sessions and share partitions, up to a limit of each."""
        from tailrace.broker.metrics.waiting_requests import describe_waiting

        services = self.services
        shares = services.shares.partitions.shares()
        return describe_waiting(services.purgatory, services.fetches.sessions, shares, now_ms)

    # The end

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """Call `ready`, now or later, when other brokers lead this broker's partitions and it may stop.

        Before that, requests that wait for new records or for other members of a group are answered.
        """

        def answer_and_stop() -> None:
            groups = self.services.groups.runtime
            for partition in groups.partitions():
                groups.resign(partition, now_ms)
            self.services.purgatory.expire_at_stop(now_ms)
            ready()

        self.services.controller.prepare_stop(now_ms, answer_and_stop)

    def close(self, now_ms: int) -> None:
        """Stop cleanly: flush all logs and mark each directory as cleanly closed."""
        if self.services.remote_logs is not None:
            self.services.remote_logs.close()
        controller = self.services.controller
        epoch = controller.stop_broker(now_ms)
        controller.close(now_ms)
        for directory in self.services.logs.directories:
            directory.close(now_ms, epoch)

    def abandon(self) -> None:
        """Release all files without writing anything, as after a crash."""
        self.services.controller.abandon()
        for directory in self.services.logs.directories:
            directory.abandon()
