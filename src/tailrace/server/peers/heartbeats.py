"""Heartbeats: the thread that keeps a broker registered with its controllers (`metadata/quorum/broker_lifecycle.py`).

It has its own connection, and finds the active controller by itself: it queries the one it knows, and if that does not
respond or is no longer active, the next. So heartbeats continue even if the loop is busy. It also keeps a LastWill up
to date, for the case that the whole process dies.
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

REQUEST_TIMEOUT_MS: Final = 4_000  # less than half of the session timeout
REGISTRATION_TIMEOUT_S: Final = 15.0  # there is no session yet, and a controller may have just started
_LOGGER: Final = logging.getLogger("tailrace.heartbeats")


class Heartbeats:
    def __init__(
        self,
        lifecycle: BrokerLifecycle,
        leader: Callable[[], Address | None],
        candidates: Callable[[], Sequence[Address]],
        security: Security = PLAIN_TEXT,
        *,
        client_id: str = "tailrace",
    ) -> None:
        """`leader` returns the known leader of the quorum, `candidates` all possible ones. Both are called from this
        thread."""
        self._lifecycle = lifecycle
        self._leader = leader
        self._candidates = candidates
        self._settings = ClientSettings(
            client_id=client_id,
            connect_timeout_ms=REQUEST_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            security=security,
        )
        self._asked = 0
        self._connection: Connection | None = None
        # The helper process of the last will can send a frame, but has neither TLS nor credentials.
        self._will = LastWill() if security == PLAIN_TEXT else None
        self._wakes = threading.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="tailrace-heartbeats", daemon=True)
        lifecycle.set_wake(self._wakes.set)

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
                self._send_next()
            except Exception:
                # Without heartbeats the broker is fenced. So it is better to continue after an error.
                _LOGGER.exception("a heartbeat failed")
                lifecycle.failed(monotonic_ms())
            wait_ms = lifecycle.due_ms - monotonic_ms()
            if wait_ms > 0 and not lifecycle.has_left:
                self._wakes.wait(wait_ms / 1_000)
            self._wakes.clear()
        self._disconnect()
        if self._will is not None:
            self._will.close(is_revoked=lifecycle.has_left)

    def _send_next(self) -> None:
        request = self._lifecycle.next_request()
        try:
            connection = self._connected()
            is_registration = isinstance(request, BrokerRegistrationRequest)
            response = connection.request(request, timeout_s=REGISTRATION_TIMEOUT_S if is_registration else None)
        except ClientError as error:
            _LOGGER.info("no controller could be reached: %s", error)
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
        """Return the addresses that may be the active controller, the most likely one first."""
        leader = self._leader()
        others = [one for one in self._candidates() if one != leader]
        return others if leader is None else [leader, *others]

    def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.is_usable:
            self._disconnect()  # the authenticated session is about to expire, or has expired
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
