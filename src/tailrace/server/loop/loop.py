"""Loop: one thread, one poll, all connections. Only the loop calls the broker.

A pass reads every ready socket once. It hands the frames over in rounds: one frame of each connection, or a run of
frames that the broker answers together. It takes the replies after each round, and sends once to each connection:

    wait → receive → (handle … take_replies)* → send → TLS handshakes → accept

Under load a pass has more to do, and does it in larger pieces. The broker's deadline limits the wait. Its `tick`,
results of other threads and responses of other nodes come before the rounds, so that their replies join them.

A client can only harm its own connection: an invalid request closes that connection, and so does an exception of the
broker on its request. Any other exception affects only the timer, chore, call or peer response that raised it
(`tailrace/diagnostics/internal_errors.py`). Only a fatal one stops the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from time import sleep
from typing import Final

from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metrics.families import Family
from tailrace.model.log_fields import fields
from tailrace.protocol.framing import InvalidFrame
from tailrace.server.broker_interface import BrokerCore
from tailrace.server.connections.acceptor import Acceptor
from tailrace.server.connections.connection import CLOSING, HANDSHAKE, OUTPUT_BYTES_MAX, WAITING, Connection
from tailrace.server.connections.connection_limits import ConnectionLimits
from tailrace.server.connections.connections import Connections
from tailrace.server.connections.listener import Listener
from tailrace.server.http.metrics_endpoint import MetricsEndpoint
from tailrace.server.loop.broker_deadline import BrokerDeadline
from tailrace.server.loop.clock import SteadyClock, monotonic_ms, wall_clock_ms
from tailrace.server.loop.garbage import FullCollection
from tailrace.server.loop.loop_timers import LoopTimers
from tailrace.server.loop.poll import BROKEN, READABLE, WRITABLE, open_poll
from tailrace.server.loop.thread_calls import ThreadCalls
from tailrace.server.loop.turn import Turn
from tailrace.server.metrics.request_meter import make_meter
from tailrace.server.metrics.server_metrics import ServerMetrics
from tailrace.server.metrics.statistics import ServerStatistics, take_statistics
from tailrace.server.peers.peers import Peers
from tailrace.server.receiving.receive_buffers import FULL_POSITION, ReceiveArena
from tailrace.server.sending.sender import Sender
from tailrace.server.sending.slice_sender import SliceSender
from tailrace.server.settings import LimitSettings, ServerSettings
from tailrace.server.tls.handshakes import Handshakes

FAILED_PASS_REST_MS_MAX: Final = 1_000  # the longest pause after repeatedly failed passes
_LOGGER: Final = logging.getLogger("tailrace.server")


class Loop:
    def __init__(
        self,
        broker: BrokerCore,
        listeners: Sequence[Listener],
        settings: ServerSettings,
        threads: ThreadCalls,
        turn: Turn,
        clock_ms: Callable[[], int] = wall_clock_ms,
        timer_ms: Callable[[], int] = monotonic_ms,
        metrics: Listener | None = None,
    ) -> None:
        self._broker = broker
        self._settings = settings
        self._turn = turn
        self._survive = broker.internal_errors.survive
        self._thread_calls = threads
        self.call_soon = self._thread_calls.call_soon  # from any thread: run a function between two rounds
        self._clock_ms = SteadyClock(clock_ms, timer_ms)  # the broker's time
        self._deadline = BrokerDeadline(broker, self._clock_ms)
        self._timer_ms = timer_ms  # the time of idle connections, pauses and drains, by a clock that cannot be set back
        self._poll = open_poll()
        self._poll.register(threads.descriptor, READABLE)
        self._log = LimitedLog(_LOGGER)
        self._limits = ConnectionLimits(settings.limits, settings.descriptors)
        self._connections = Connections(self._poll, settings, broker, timer_ms())
        self._tls_backlog = self._connections.tls_backlog
        self._handshakes = Handshakes(turn, self._lost)
        self._acceptor = Acceptor(listeners, self._limits, self._poll, self._log, self._connections.add, broker)
        self._arena = ReceiveArena()
        self._slices = SliceSender(settings.slices)
        self._now_ms = self._clock_ms()
        self._time_ms = timer_ms()
        self._read: set[Connection] = set()  # connections that may have bytes in the arena
        self._unsent: list[Connection] = []  # connections with replies to send in this pass
        self._is_hurried = False  # do not wait: there may be replies that no event will announce
        self._is_busy = False  # the last pass had events
        self._is_stopped = False
        self._meter = make_meter(serves_metrics=metrics is not None)
        self._server_metrics = ServerMetrics(self._meter)
        self._peers = Peers(
            self._poll,
            broker.outbox,
            client_id=settings.client_id,
            submit=threads.chores.submit,
            timer_ms=timer_ms,
            security=settings.outgoing,
            errors=broker.internal_errors,
        )
        self._metrics = MetricsEndpoint(metrics, self._poll, self._metric_families, broker, self._clock_ms)
        self._garbage = FullCollection(timer_ms) if settings.owns_process else None
        self._timers = LoopTimers(self._connections, self._acceptor, self._metrics, self._peers, self._garbage)
        self._sender = Sender(self._connections, self._slices, self._meter, self._timers, self._close, self._lost)

    def listen(self) -> None:
        self._acceptor.start()
        self._metrics.start()

    def run(self) -> None:
        """Serve until drained or stopped."""
        failures = 0
        while not self._is_stopped:
            try:
                self.run_pass()
                failures = 0
            except Exception as error:
                self._survive("a pass of the loop", error, self._now_ms)
                failures += 1
                sleep(min(failures, FAILED_PASS_REST_MS_MAX) / 1_000)
                self._resume_all()

    def _resume_all(self) -> None:
        """Let every connection that may have a frame continue, after a pass that failed."""
        waiting = [one for one in self._connections if not one.hold and one.input.may_have_frame]
        self._timers.set(self._connections.put_off(waiting, self._time_ms))

    def close_connections(self, is_meant: Callable[[ConnectionContext], bool]) -> int:
        """Close the connections that match at once; return their number."""
        meant = [connection for connection in self._connections if is_meant(connection.context)]
        for connection in meant:
            self._close(connection, "dropped")
        return len(meant)

    def change_limits(self, limits: LimitSettings) -> None:
        self._limits.change(limits)
        self._acceptor.limits_changed()

    def statistics(self) -> ServerStatistics:
        chores = self._thread_calls.chores
        return take_statistics(self._connections, self._acceptor, self._slices, self._arena, chores, self._meter)

    def _metric_families(self) -> Iterator[Family]:
        """Yield the metrics of the network layer, the process and the broker."""
        yield from self._server_metrics.families(self.statistics(), self._connections, self._now_ms)
        yield from self._broker.metric_families(self._now_ms)

    def drain(self) -> None:
        """Accept nothing more, take no further requests, send the replies that are due, then stop."""
        if self._timers.drain_until_ms is not None:
            return
        _LOGGER.info("stopping: no new connections are accepted", extra=fields(connections=len(self._connections)))
        self._timers.begin_drain(self._time_ms + self._settings.drain_ms)
        self._acceptor.close()
        self._metrics.drain()
        for connection in self._connections:
            if connection.hold & WAITING or connection.output.size:
                connection.drain()
            else:
                self._close(connection, "drained")
        self._timers.recompute()
        self._stop_if_drained()

    def stop(self) -> None:
        """Stop after this pass, even with pending replies."""
        self._is_stopped = True

    def close(self) -> None:
        """Close everything that is still open, after `run`."""
        self._acceptor.close()
        for connection in self._connections:
            self._close(connection, "stopped")
        self._metrics.close()
        self._peers.close()
        self._poll.close()

    def run_pass(self) -> None:
        self._meter.waits()
        events = self._poll.poll(self._wait_s())
        self._meter.wakes()
        if self._tls_backlog:
            events = self._tls_backlog.joined(events)
        self._is_busy = bool(events)
        self._now_ms = self._clock_ms()
        self._time_ms = time_ms = self._timer_ms()
        self._turn.begin()
        connections = self._connections.by_descriptor
        ready, others = list[Connection](), list[int]()
        for descriptor, mask in events:
            connection = connections.get(descriptor)
            if connection is None:
                if not self._peers.serve(descriptor, mask, self._now_ms):
                    others.append(descriptor)
            elif connection.hold:
                self._look_at_held(connection, mask, ready)
            else:
                if self._arena.position > FULL_POSITION:
                    self._serve(ready)
                    self._recycle()
                    ready = []
                if self._receive(connection):
                    ready.append(connection)
        if others and self._thread_calls.descriptor in others:
            others.remove(self._thread_calls.descriptor)
            self._thread_calls.take(self._now_ms)
            self._timers.recompute()
        if (due_ms := self._timers.first_ms()) is not None and time_ms >= due_ms:
            self._run_timers(ready, is_idle=not events)
        self._deadline.tick_if_due(self._now_ms)
        self._serve(ready)
        self._peers.send_waiting()
        for connection in self._unsent:
            if connection.is_unsent:
                self._sender.send(connection, self._time_ms)
        self._unsent.clear()
        self._handshakes.carry_on()
        for descriptor in others:
            if self._acceptor.owns(descriptor):
                self._acceptor.accept(descriptor, time_ms)
            else:
                self._metrics.serve(descriptor, time_ms)
            self._timers.recompute()

    def _wait_s(self) -> float:
        """Return how long the loop may wait without an event."""
        wait_ms = self._deadline.wait_ms(self._now_ms, self._is_busy)
        if self._is_hurried or (self._tls_backlog and self._tls_backlog.is_readable()):
            self._is_hurried = False
            return 0
        if (due_ms := self._timers.first_ms()) is not None:
            wait_ms = min(due_ms - self._time_ms, wait_ms)
        return wait_ms / 1_000 if wait_ms > 0 else 0

    def _look_at_held(self, connection: Connection, mask: int, ready: list[Connection]) -> None:
        """Handle an event of a connection that must not be read now."""
        if mask & BROKEN:
            self._close(connection, "reset")
        elif connection.hold & HANDSHAKE:
            self._handshakes.append(connection)
        elif mask & WRITABLE:
            self._sender.send(connection, self._time_ms)
            if not connection.hold:
                ready.append(connection)
        else:
            self._connections.want(connection, 0)

    def _receive(self, connection: Connection) -> bool:
        """Read once. Return True if bytes arrived."""
        self._read.add(connection)
        try:
            size = connection.receive(self._arena, self._time_ms)
        except BlockingIOError:
            return False
        except OSError as error:
            self._lost(connection, "receive failed", error)
            return False
        if not size:
            self._close(connection, "end of stream")
            return False
        self._meter.bytes_in += size
        return True

    def _run_timers(self, ready: list[Connection], *, is_idle: bool) -> None:
        """Handle idle connections, ended pauses, paused listeners, and a drain that takes too long."""
        for connection, reason in self._connections.take_overdue(self._time_ms):
            self._close(connection, reason)
        for connection in self._connections.take_rested(self._time_ms):
            if not connection.hold:
                self._connections.want(connection, READABLE)
                ready.append(connection)
        self._acceptor.tick(self._time_ms)
        self._metrics.tick(self._time_ms)
        self._peers.tick(self._now_ms)
        if self._garbage is not None:
            self._garbage.tick(is_idle=is_idle)
        if self._timers.drain_until_ms is not None and self._time_ms >= self._timers.drain_until_ms:
            self._is_stopped = True
        self._timers.recompute()

    def _serve(self, ready: list[Connection]) -> None:
        """Let ready connections hand over frames and take replies, until none is left or the time is over."""
        while True:
            self._meter.round_begins()
            rest: list[Connection] = []
            for number, connection in enumerate(ready, 1):
                while self._hand_over(connection) and connection.input.may_have_frame and not self._turn.is_late():
                    pass
                if self._turn.is_late():
                    rest = ready[number:]
                    break
            ready = self._queue(self._broker.take_replies()) + rest
            if not ready:
                return
            if self._turn.is_late():
                self._timers.set(self._connections.put_off(ready, self._time_ms))
                return

    def _hand_over(self, connection: Connection) -> bool:
        """Hand over the next frame, if any. Return True if another may follow in the same round."""
        try:
            frame = connection.input.next_frame()
        except (InvalidFrame, OSError) as error:
            self._complain(connection, "invalid frame", error)
            connection.close_after_replies("invalid frame")
            self._close_if_done(connection)
            return False
        if frame is None:
            return False
        connection.begin_request()
        self._meter.taken(connection, frame)
        try:
            may_follow = connection.handle(frame, connection.context, self._now_ms)
        except Exception as error:
            self._survive("a request", error, self._now_ms, client=connection.peer)
            connection.fail_request("broker error")
            self._close_if_done(connection)
            may_follow = False
        self._meter.handled(connection)
        return may_follow

    def _queue(self, replies: Sequence[Reply]) -> list[Connection]:
        """Queue replies to be sent. Return the connections that may hand over their next frame."""
        ready = []
        self._meter.round_ends(len(replies))
        for connection_id, parts, throttle_ms, close in replies:
            connection = self._connections.by_id.get(connection_id)
            if connection is None or connection.hold & (WAITING | CLOSING) == CLOSING:
                continue  # the connection was closed before its reply, or its request has failed
            assert connection.hold & WAITING, f"a second reply on {connection.context}"
            connection.take_reply(throttle_ms, close)
            self._meter.replied(connection, throttle_ms, is_sent=parts is None)
            output = connection.output
            if parts is not None:
                try:
                    if connection.queue(parts):
                        self._unsent.append(connection)
                except Exception as error:
                    self._survive("a reply", error, self._now_ms)
                    self._close(connection, "broker error")
                    continue
                if output.size > OUTPUT_BYTES_MAX:
                    self._sender.send(connection, self._time_ms)
            elif not output.size:
                self._sender.resume(connection, self._time_ms)
            if not connection.hold and connection.input.may_have_frame:
                ready.append(connection)
        return ready

    def _recycle(self) -> None:
        """Let every connection keep its remaining bytes of the arena, and start the arena again."""
        for connection in self._read:
            connection.input.keep(self._arena)
        self._read.clear()
        self._arena.recycle()

    def _close(self, connection: Connection, reason: str) -> None:
        self._connections.remove(connection, reason, self._slices)
        self._read.discard(connection)
        self._acceptor.left(connection.context.listener, connection.context.client_host)
        try:
            self._broker.connection_closed(connection.id, self._now_ms)
        except Exception as error:
            self._survive("a closed connection", error, self._now_ms)
        self._is_hurried = True
        self._stop_if_drained()

    def _stop_if_drained(self) -> None:
        if self._timers.drain_until_ms is not None and not self._connections:
            self._is_stopped = True

    def _close_if_done(self, connection: Connection) -> None:
        """Close a connection that takes no further requests if no reply is left to wait for or to send."""
        if not connection.output.size and not connection.pending:
            self._close(connection, connection.end_reason)

    def _lost(self, connection: Connection, kind: str, error: Exception) -> None:
        """Close a connection that cannot be used: the client has disconnected, or a file or TLS has failed."""
        if isinstance(error, ConnectionError):
            kind = "reset"
        elif not isinstance(error, OSError):
            self._survive("sending", error, self._now_ms)
        else:
            self._complain(connection, kind, error)
        self._close(connection, kind)

    def _complain(self, of: Connection, kind: str, error: Exception) -> None:
        self._log.write(logging.WARNING, kind, self._time_ms, f"connection closed: {kind}", client=of.peer, error=error)
