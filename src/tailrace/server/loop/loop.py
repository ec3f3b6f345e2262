"""Loop: one thread, one epoll, all connections; the broker is called from nowhere else.

A pass reads every ready socket once, hands the frames over in rounds, one of each connection or a run that the broker
answers together, takes the replies after each round, and sends once to each connection that has some:

    wait → receive → (handle … take_replies)* → send → accept

Under load a pass has more to do and so does it in larger pieces. The broker's deadline bounds the wait; its `tick`,
what finished on other threads and answers of other nodes come before the rounds, so that their replies join them.

A client can only harm its own connection: what it does wrong closes that connection, and so does an exception of the
broker on its request. Any other exception costs the timer, chore, call or peer's answer that raised it
(`tailrace/diagnostics/internal_errors.py`). Only a fatal one ends the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from select import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, epoll
from time import sleep
from typing import Final

from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metrics.families import Family
from tailrace.model.log_fields import fields
from tailrace.protocol.framing import InvalidFrame
from tailrace.server.broker_seam import BrokerCore
from tailrace.server.connections.acceptor import Acceptor
from tailrace.server.connections.connection import CLOSING, OUTPUT_BYTES_MAX, THROTTLED, WAITING, Connection
from tailrace.server.connections.connection_limits import ConnectionLimits
from tailrace.server.connections.connections import Connections
from tailrace.server.connections.listener import Listener
from tailrace.server.http.metrics_endpoint import MetricsEndpoint
from tailrace.server.loop.chores import Chores
from tailrace.server.loop.clock import SteadyClock, monotonic_ms, wall_clock_ms
from tailrace.server.loop.garbage import OldGarbage
from tailrace.server.loop.loop_timers import LoopTimers
from tailrace.server.loop.other_threads import OtherThreads
from tailrace.server.loop.turn import Turn
from tailrace.server.loop.wakeup import WakeUp
from tailrace.server.metrics.request_meter import make_meter
from tailrace.server.metrics.server_measures import ServerMeasures
from tailrace.server.metrics.statistics import ServerStatistics, take_statistics
from tailrace.server.peers.peers import Peers
from tailrace.server.receiving.receive_buffers import FULL_POSITION, ReceiveArena
from tailrace.server.sending.sender import Sender
from tailrace.server.sending.slice_sender import SliceSender
from tailrace.server.settings import LimitSettings, ServerSettings

_DAY_MS: Final = 86_400_000
PASS_MS_MAX: Final = 5  # one that sends much at once must not keep the others waiting for longer
FAILED_PASS_REST_MS_MAX: Final = 1_000  # passes that fail one after the other must not burn the processor
_LOGGER: Final = logging.getLogger("tailrace.server")


class Loop:
    def __init__(
        self,
        broker: BrokerCore,
        listeners: Sequence[Listener],
        settings: ServerSettings,
        chores: Chores,
        wakeup: WakeUp,
        turn: Turn,
        clock_ms: Callable[[], int] = wall_clock_ms,
        timer_ms: Callable[[], int] = monotonic_ms,
        metrics: Listener | None = None,
    ) -> None:
        self._broker = broker
        self._settings = settings
        self._turn = turn
        self._survive = broker.internal_errors.survive
        self._others = OtherThreads(chores, wakeup, broker.internal_errors)
        self.call_soon = self._others.call_soon  # from any thread: run a function between two rounds
        self._clock_ms = SteadyClock(clock_ms, timer_ms)  # the broker's time
        self._timer_ms = timer_ms  # the time of idle connections, pauses and drains, which no one can set back
        self._poll = epoll()
        self._poll.register(wakeup.descriptor, EPOLLIN)
        self._log = LimitedLog(_LOGGER)
        self._limits = ConnectionLimits(settings.limits, settings.descriptors)
        self._connections = Connections(self._poll, settings, broker, timer_ms())
        self._undecrypted = self._connections.undecrypted
        self._acceptor = Acceptor(listeners, self._limits, self._poll, self._log, self._connections.add, broker)
        self._arena = ReceiveArena()
        self._slices = SliceSender(settings.slices)
        self._now_ms = self._clock_ms()
        self._time_ms = timer_ms()
        self._read: set[Connection] = set()  # who may have bytes in the arena
        self._unsent: list[Connection] = []  # who has replies to be sent in this pass
        self._is_hurried = False  # do not wait: there may be replies that no event will announce
        self._deadline_ms: int | None = None  # the broker's, when the pass began
        self._is_stopped = False
        self._meter = make_meter(is_asked=metrics is not None)
        self._server_measures = ServerMeasures(self._meter)
        self._peers = Peers(
            self._poll,
            broker.outbox,
            submit=chores.submit,
            timer_ms=timer_ms,
            security=settings.outgoing,
            errors=broker.internal_errors,
        )
        self._metrics = MetricsEndpoint(
            metrics, self._poll, self._measures, broker.explain_fetch, self._clock_ms, broker.internal_errors
        )
        self._garbage = OldGarbage(timer_ms) if settings.owns_process else None
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
        """After a pass that was cut short: let every connection that may have a frame take its turn."""
        waiting = [one for one in self._connections if not one.hold and one.input.may_have_frame]
        self._timers.set(self._connections.put_off(waiting, self._time_ms))

    def close_connections(self, is_meant: Callable[[ConnectionContext], bool]) -> int:
        """Close the connections of some clients at once; says how many."""
        meant = [connection for connection in self._connections if is_meant(connection.context)]
        for connection in meant:
            self._close(connection, "dropped")
        return len(meant)

    def change_limits(self, limits: LimitSettings) -> None:
        self._limits.change(limits)
        self._acceptor.limits_changed()

    def statistics(self) -> ServerStatistics:
        network = self._connections, self._acceptor, self._slices, self._arena
        return take_statistics(*network, self._others.chores, self._meter)

    def _measures(self) -> Iterator[Family]:
        """What there is to tell Prometheus, of the network, the process and the broker."""
        yield from self._server_measures.families(self.statistics(), self._connections, self._now_ms)
        yield from self._broker.metric_families(self._now_ms)

    def drain(self) -> None:
        """Accept nothing more, take no further requests, send the replies that are due, then stop."""
        if self._timers.drain_until_ms is not None:
            return
        _LOGGER.info("stopping: nothing new is accepted", extra=fields(connections=len(self._connections)))
        self._timers.drain_until_ms = self._time_ms + self._settings.drain_ms
        self._acceptor.close()
        for connection in self._connections:
            if connection.hold & WAITING or connection.output.size:
                connection.hold |= CLOSING
            else:
                self._close(connection, "drained")
        self._timers.look_again()
        self._stop_if_drained()

    def stop(self) -> None:
        """End after this pass, whatever is pending."""
        self._is_stopped = True

    def close(self) -> None:
        """After `run`: close what is still open."""
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
        if self._undecrypted:
            events = self._undecrypted.joined(events)
        self._now_ms = self._clock_ms()
        self._time_ms = time_ms = self._timer_ms()
        self._turn.begin()
        connections = self._connections.by_descriptor
        ready: list[Connection] = []
        others: list[int] = []
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
        if others and self._others.descriptor in others:
            others.remove(self._others.descriptor)
            self._others.take(self._now_ms)
            self._timers.look_again()
        if (due_ms := self._timers.first_ms()) is not None and time_ms >= due_ms:
            self._run_timers(ready, is_idle=not events)
        if self._deadline_ms is not None and self._now_ms >= self._deadline_ms:
            self._broker.tick(self._now_ms)
        self._serve(ready)
        self._peers.send_waiting()
        for connection in self._unsent:
            if connection.is_unsent:
                self._sender.send(connection, self._time_ms)
        self._unsent.clear()
        for descriptor in others:
            if self._acceptor.owns(descriptor):
                self._acceptor.accept(descriptor, time_ms)
            else:
                self._metrics.serve(descriptor, time_ms)
            self._timers.look_again()

    def _wait_s(self) -> float:
        """How long nothing has to be done without an event."""
        self._deadline_ms = deadline_ms = self._broker.next_deadline_ms()
        if self._is_hurried or (self._undecrypted and self._undecrypted.may_go_on()):
            self._is_hurried = False
            return 0
        wait_ms = _DAY_MS if deadline_ms is None else min(deadline_ms - self._clock_ms(), _DAY_MS)
        if (due_ms := self._timers.first_ms()) is not None:
            wait_ms = min(due_ms - self._time_ms, wait_ms)
        return wait_ms / 1_000 if wait_ms > 0 else 0

    def _look_at_held(self, connection: Connection, mask: int, ready: list[Connection]) -> None:
        """An event of a connection that is not to be read."""
        if mask & (EPOLLHUP | EPOLLERR):
            self._close(connection, "reset")
        elif mask & EPOLLOUT:
            self._sender.send(connection, self._time_ms)
            if not connection.hold:
                ready.append(connection)
        else:
            self._connections.want(connection, 0)

    def _receive(self, connection: Connection) -> bool:
        """Read once; says whether something came."""
        self._read.add(connection)
        try:
            size = connection.input.receive(connection.recv_into, self._arena)
        except BlockingIOError:
            return False
        except OSError as error:
            self._lost(connection, "receive failed", error)
            return False
        if not size:
            self._close(connection, "end of stream")
            return False
        self._meter.bytes_in += size
        connection.active_ms = self._time_ms
        return True

    def _run_timers(self, ready: list[Connection], *, is_idle: bool) -> None:
        """Idle connections, pauses that are over, listeners that may go on, a drain that took too long."""
        for connection, reason in self._connections.take_overdue(self._time_ms):
            self._close(connection, reason)
        for connection in self._connections.take_rested(self._time_ms):
            if not connection.hold:
                self._connections.want(connection, EPOLLIN)
                ready.append(connection)
        self._acceptor.tick(self._time_ms)
        self._metrics.tick(self._time_ms)
        self._peers.tick(self._now_ms)
        if self._garbage is not None:
            self._garbage.tick(is_idle=is_idle)
        if self._timers.drain_until_ms is not None and self._time_ms >= self._timers.drain_until_ms:
            self._is_stopped = True
        self._timers.look_again()

    def _serve(self, ready: list[Connection]) -> None:
        """Let ready connections hand over frames and take replies, until none has a turn or some had it too long."""
        while True:
            self._meter.round_begins()
            for connection in ready:
                while self._hand_over(connection):
                    pass
            ready = self._queue(self._broker.take_replies())
            if not ready:
                return
            if self._timer_ms() - self._time_ms > PASS_MS_MAX:
                self._timers.set(self._connections.put_off(ready, self._time_ms))
                return

    def _hand_over(self, connection: Connection) -> bool:
        """Hand over the next frame, if there is one; says whether another may follow in the same round."""
        try:
            frame = connection.input.next_frame()
        except (InvalidFrame, OSError) as error:
            self._complain(connection, "invalid frame", error)
            self._close_after_sending(connection, "invalid frame")
            return False
        if frame is None:
            return False
        connection.hold = WAITING
        connection.pending += 1
        self._meter.taken(connection, frame)
        try:
            may_follow = connection.handle(frame, connection.context, self._now_ms)
        except Exception as error:
            self._survive("a request", error, self._now_ms, client=connection.peer)
            connection.pending -= 1
            self._close_after_sending(connection, "broker error")
            may_follow = False
        self._meter.handled(connection)
        return may_follow

    def _queue(self, replies: Sequence[Reply]) -> list[Connection]:
        """Queue replies to be sent; returns whose turn it is to hand over another frame."""
        ready = []
        connections = self._connections.by_id
        self._meter.round_ends(len(replies))
        for connection_id, parts, throttle_ms, close in replies:
            connection = connections.get(connection_id)
            if connection is None or connection.hold & (WAITING | CLOSING) == CLOSING:
                continue  # it went before its reply came, or its request has failed
            assert connection.hold & WAITING, f"a second reply on {connection.context}"
            connection.pending -= 1
            if not connection.pending:
                connection.hold ^= WAITING
            self._meter.replied(connection, throttle_ms, is_sent=parts is None)
            if throttle_ms > 0:
                connection.throttle_ms = throttle_ms
                connection.hold |= THROTTLED
            if close:
                connection.hold |= CLOSING
            output = connection.output
            if parts is not None:
                try:
                    output.add(parts)
                except Exception as error:
                    self._survive("a reply", error, self._now_ms)
                    self._close(connection, "broker error")
                    continue
                if not connection.is_unsent:
                    connection.is_unsent = True
                    self._unsent.append(connection)
                if output.size > OUTPUT_BYTES_MAX:
                    self._sender.send(connection, self._time_ms)
            elif not output.size:
                self._sender.go_on(connection, self._time_ms)
            if not connection.hold and connection.input.may_have_frame:
                ready.append(connection)
        return ready

    def _recycle(self) -> None:
        """Let every connection keep what it has left in the arena, and start that again."""
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

    def _close_after_sending(self, connection: Connection, reason: str) -> None:
        """Close it, but not before the replies to what it asked until now."""
        connection.hold = CLOSING | WAITING if connection.pending else CLOSING
        connection.end_reason = reason
        if not connection.output.size and not connection.pending:
            self._close(connection, reason)

    def _lost(self, connection: Connection, kind: str, error: Exception) -> None:
        """It cannot be used any more: the client has gone, or a file, or TLS has failed."""
        if isinstance(error, ConnectionError):
            kind = "reset"
        elif not isinstance(error, OSError):
            self._survive("sending", error, self._now_ms)
        else:
            self._complain(connection, kind, error)
        self._close(connection, kind)

    def _complain(self, of: Connection, kind: str, error: Exception) -> None:
        self._log.write(logging.WARNING, kind, self._time_ms, f"connection closed: {kind}", client=of.peer, error=error)
