"""Server: a broker behind its listeners, in this thread or in its own.

    bind the listeners → build the broker, which may need the ports → listen → loop → drain → close the broker

Listeners are bound in the given order. Everything up to listening happens in the caller's thread, so that errors are
raised there. `stop` may be called from any thread, also twice, and returns when everything is closed.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.broker.storage.disk_failures import LogDirectoriesFailed
from tailrace.server.broker_interface import BrokerBuilder, BrokerCore
from tailrace.server.connections.descriptors import current_descriptors
from tailrace.server.connections.endpoints import Endpoint, advertise
from tailrace.server.connections.listener import Listener
from tailrace.server.loop.chores import Chores
from tailrace.server.loop.clock import wall_clock_ms
from tailrace.server.loop.loop import Loop
from tailrace.server.loop.thread_calls import ThreadCalls
from tailrace.server.loop.turn import Turn
from tailrace.server.loop.wakeup import WakeUp
from tailrace.server.metrics.statistics import ServerStatistics
from tailrace.server.settings import LimitSettings, ServerSettings
from tailrace.waiting.chore import Chore

T = TypeVar("T")
_LOGGER: Final = logging.getLogger("tailrace.server")


class ServerStopped(RuntimeError):
    """The server has ended, or has not been started."""


class _Call(Generic[T]):
    """A function to run on the loop's thread for another thread."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._value: T

    def run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error
        self._done.set()

    def refuse(self) -> None:
        if not self._done.is_set():
            self._error = ServerStopped("the server has stopped")
            self._done.set()

    def result(self) -> T:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Server:
    def __init__(
        self,
        build: BrokerBuilder,
        settings: ServerSettings | None = None,
        *,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._build = build
        self._settings = settings or ServerSettings()
        self._clock_ms = clock_ms
        self._lock = threading.RLock()  # a signal handler may run while its own thread has the lock
        self._calls: set[_Call[Any]] = set()  # calls that a thread waits for
        self._turn = Turn()
        self._wakeup: WakeUp
        self._chores: Chores
        self._loop: Loop | None = None
        self._broker: BrokerCore | None = None
        self._thread: threading.Thread | None = None
        self._loop_thread_id: int | None = None
        self._is_listening = False
        self._has_ended = False  # the loop does not run further calls
        self._closed = threading.Event()
        self._closes_broker = True
        self._error: BaseException | None = None
        self.endpoints: tuple[Endpoint, ...] = ()
        self.advertised: tuple[Endpoint, ...] = ()
        self.metrics: Endpoint | None = None  # the address of the metrics endpoint

    # Starting

    def open(self) -> None:
        """Bind the listeners and build the broker. Clients cannot connect yet."""
        listeners: list[Listener] = []
        metrics: Listener | None = None
        self._wakeup = WakeUp()
        self._chores = Chores(self._settings.chore_threads, self._wakeup.set)
        try:
            for endpoint in self._settings.listeners:
                listeners.append(Listener(endpoint, self._settings))
            if self._settings.metrics is not None:
                metrics = Listener(self._settings.metrics, self._settings)
                self.metrics = metrics.endpoint
            self.endpoints = tuple(listener.endpoint for listener in listeners)
            self.advertised = advertise(self.endpoints, self._settings.advertised, socket.gethostname())
            self._broker = self._build(self)
        except BaseException:
            for listener in listeners if metrics is None else [*listeners, metrics]:
                listener.close()
            self._chores.close()
            self._wakeup.close()
            raise
        settings = replace(self._settings, descriptors=current_descriptors())
        self._loop = Loop(
            self._broker,
            listeners,
            settings,
            ThreadCalls(self._chores, self._wakeup, self._broker.internal_errors),
            self._turn,
            self._clock_ms,
            metrics=metrics,
        )

    def is_turn_over(self) -> bool:
        """Return True if a pausable request should pause; called by the broker."""
        return self._turn.is_over()

    def submit(self, chore: Chore) -> None:
        """Run a chore; called by the broker."""
        self._chores.submit(chore)

    def run(self) -> None:
        """Serve in this thread until stopped; raise the error that ended it, if any."""
        self.listen()
        self._serve()
        self._raise_error()

    def start(self) -> None:
        """Serve in a separate thread; clients can connect when this returns."""
        self.listen()
        self._thread = threading.Thread(target=self._serve, name="tailrace-server", daemon=True)
        self._thread.start()

    def listen(self) -> None:
        """Let clients connect; they wait until the server runs."""
        if self._loop is None:
            self.open()
        assert self._loop is not None
        if self._is_listening:
            return
        self._is_listening = True
        try:
            self._loop.listen()
        except BaseException:
            self._loop.stop()
            self._serve()
            raise

    def _serve(self) -> None:
        assert self._loop is not None
        assert self._broker is not None
        self._loop_thread_id = threading.get_ident()
        try:
            try:
                self._loop.run()
            finally:
                self._refuse_calls()
                self._loop.close()
                self._chores.close()
            self._chores.apply_finished(self._clock_ms(), self._broker.internal_errors)
            if self._closes_broker:
                self._broker.close(self._clock_ms())
                _LOGGER.info("broker stopped cleanly; everything is on disk")
        except LogDirectoriesFailed as error:
            _LOGGER.critical("the broker stops because of an error: %s", error)
            self._error = error
        except BaseException as error:
            _LOGGER.critical("the server has failed", exc_info=True)
            self._error = error
        finally:
            self._wakeup.close()
            self._closed.set()

    def _refuse_calls(self) -> None:
        with self._lock:
            self._has_ended = True
            for call in self._calls:
                call.refuse()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    # From any thread

    def port(self, listener: str | None = None) -> int:
        """Return the port of a listener, or of the first one."""
        for endpoint in self.endpoints:
            if listener in (None, endpoint.name):
                return endpoint.port
        raise KeyError(
            f"there is no listener {listener}; the listeners are {', '.join(one.name for one in self.endpoints)}"
        )

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the loop's thread, the only one that may use the broker, and return its result."""
        if threading.get_ident() == self._loop_thread_id:
            return function()
        call = _Call(function)
        with self._lock:
            if not self.call_soon(call.run):
                raise ServerStopped("the server is not running")
            self._calls.add(call)
        try:
            return call.result()
        finally:
            with self._lock:
                self._calls.discard(call)

    def statistics(self) -> ServerStatistics:
        assert self._loop is not None
        return self.call(self._loop.statistics)

    def close_connections(self, is_meant: Callable[[ConnectionContext], bool]) -> int:
        """Close the connections that match at once; return their number."""
        loop = self._loop
        assert loop is not None
        return self.call(lambda: loop.close_connections(is_meant))

    def change_limits(self, limits: LimitSettings) -> None:
        """Set other connection limits."""
        loop = self._loop
        assert loop is not None
        self.call(lambda: loop.change_limits(limits))

    def wake(self) -> None:
        """Make the loop check the clock and the broker."""
        self.call_soon(lambda: None)

    # Stopping

    def request_stop(self) -> None:
        """Begin to drain as soon as the broker may stop; do not wait for the end. Safe in a signal handler."""
        if self._loop is not None:
            self.call_soon(self._prepare_stop)

    def _prepare_stop(self) -> None:
        assert self._broker is not None
        assert self._loop is not None
        self._broker.prepare_stop(self._clock_ms(), self._loop.drain)

    def request_stop_now(self) -> None:
        """Stop after the present pass. Safe in a signal handler."""
        if self._loop is not None:
            self.call_soon(self._loop.stop)

    def stop(self) -> None:
        """Drain, and close everything, the broker last. Raise the error that had ended the server before, if any."""
        self.request_stop()
        self._await_end()

    def stop_now(self) -> None:
        """Like `stop`, but pending replies are dropped."""
        self.request_stop_now()
        self._await_end()

    def kill(self) -> None:
        """Drop all connections, and the broker without closing it, as a crash would."""
        self._closes_broker = False
        self.stop_now()

    def _await_end(self) -> None:
        if self._loop is None:
            return
        if self._loop_thread_id is None:  # opened but never served
            self._loop.stop()
            self._serve()
        assert threading.get_ident() != self._loop_thread_id or self._closed.is_set(), "the loop cannot wait for itself"
        self._closed.wait()
        if self._thread is not None:
            self._thread.join()
        self._raise_error()

    def call_soon(self, function: Callable[[], None]) -> bool:
        with self._lock:
            if self._loop is None or self._has_ended:
                return False
            self._loop.call_soon(function)
            return True

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
