"""Heartbeats: the thread that keeps a broker registered with its controllers (`metadata/quorum/broker_lifecycle.py`).

It has a connection of its own, and finds the active controller by itself: it asks the one that it knows, and when that
one does not answer or is not the controller any more, the next. So it goes on, whatever the loop is busy with. What is
said if the whole process dies it leaves with a LastWill.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.client.errors import ClientError
from tailrace.client.network.address import Address
from tailrace.client.network.connection import Connection
from tailrace.client.security.security import PLAIN_TEXT, Security
from tailrace.client.settings import ClientSettings
from tailrace.metadata.quorum.broker_lifecycle import BrokerLifecycle
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import BrokerRegistrationRequest
from tailrace.server.loop.clock import monotonic_ms
from tailrace.server.peers.last_will import LastWill

REQUEST_TIMEOUT_MS: Final = 4_000  # below half of the session that it keeps
REGISTRATION_TIMEOUT_S: Final = 15.0  # there is no session yet, and a controller may have just been started
_LOGGER: Final = logging.getLogger("tailrace.heartbeats")


class Heartbeats:
    def __init__(
        self,
        lifecycle: BrokerLifecycle,
        leader: Callable[[], Address | None],
        candidates: Callable[[], Sequence[Address]],
        security: Security = PLAIN_TEXT,
    ) -> None:
        """`leader`: who leads the quorum as far as is known; `candidates`: everybody who might. Both may be asked from
        this thread."""
        self._lifecycle = lifecycle
        self._leader = leader
        self._candidates = candidates
        self._settings = ClientSettings(
            connect_timeout_ms=REQUEST_TIMEOUT_MS, request_timeout_ms=REQUEST_TIMEOUT_MS, security=security
        )
        self._asked = 0
        self._connection: Connection | None = None
        # The process beside us can send a frame, and knows nothing of TLS or of who we are.
        self._will = LastWill() if security == PLAIN_TEXT else None
        self._wakes = threading.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="tailrace-heartbeats", daemon=True)
        lifecycle.wake_by(self._wakes.set)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        self._wakes.set()
        self._thread.join()

    def _run(self) -> None:
        lifecycle = self._lifecycle
        while not self._is_stopped and not lifecycle.has_left:
            try:
                self._say_something()
            except Exception:
                # A broker without heartbeats is fenced: better a broken one once more than none.
                _LOGGER.exception("a heartbeat failed")
                lifecycle.failed(monotonic_ms())
            wait_ms = lifecycle.due_ms - monotonic_ms()
            if wait_ms > 0 and not lifecycle.has_left:
                self._wakes.wait(wait_ms / 1_000)
            self._wakes.clear()
        self._disconnect()
        if self._will is not None:
            self._will.close(is_revoked=lifecycle.has_left)

    def _say_something(self) -> None:
        request = self._lifecycle.next_request()
        try:
            connection = self._connected()
            is_registration = isinstance(request, BrokerRegistrationRequest)
            response = connection.request(request, timeout_s=REGISTRATION_TIMEOUT_S if is_registration else None)
        except ClientError as error:
            _LOGGER.info("no controller: %s", error)
            self._try_another()
            self._lifecycle.failed(monotonic_ms())
            return
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            self._try_another()
            self._lifecycle.failed(monotonic_ms())
            return
        self._asked = 0
        lifecycle = self._lifecycle
        lifecycle.answered(request, response, monotonic_ms())
        if self._will is not None and lifecycle.epoch >= 0 and not lifecycle.has_left:
            self._will.write(lifecycle.registration.id, lifecycle.epoch, self._addresses())

    def _addresses(self) -> list[Address]:
        """Who may be the active controller, the likeliest first."""
        leader = self._leader()
        others = [one for one in self._candidates() if one != leader]
        return others if leader is None else [leader, *others]

    def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.is_usable:
            self._disconnect()  # its session is about to end, or the controller has ended it
        if self._connection is None:
            candidates = self._addresses()
            self._connection = Connection(candidates[self._asked % len(candidates)], self._settings)
        return self._connection

    def _try_another(self) -> None:
        self._disconnect()
        self._asked += 1

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None
