"""RequestMeter: counts and times requests on their way through the loop, for each API.

    read from the socket ─queue─► handed to the broker ─local─► it returns ─remote─► the reply is there ─response─► sent
    └──────────────────────────────────────────────── total ──────────────────────────────────────────────────────────┘

These are Kafka's words. `queue` is the time that other requests of the same pass take; `remote` is what a request waits
for others, in the purgatory, and 0 for most, so only those that wait are added. A request is in one place at a time and
a connection has one request at the broker, so what has to be remembered fits on the connection.

The clock is read once after each request, once for the replies of a round, and once when a connection was sent to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from tailrace.metrics.histogram import SIZE_BOUNDS, Histogram
from tailrace.model.log_fields import fields
from tailrace.protocol.api_keys import apis
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header
from tailrace.server.connection import Connection

REQUEST_LOGGER: Final = logging.getLogger("tailrace.request")
OTHER: Final = "other"  # what no API is called
VERSIONS_MAX: Final = 32


class ApiMeter:
    """The requests of one API."""

    __slots__ = ("bytes", "local", "name", "queue", "remote", "response", "throttle", "total", "versions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions = [0] * (VERSIONS_MAX + 1)  # requests by version; the last one stands for all beyond
        self.bytes = Histogram(SIZE_BOUNDS)
        self.queue = Histogram()
        self.local = Histogram()
        self.remote = Histogram()  # of those that waited
        self.response = Histogram()
        self.throttle = Histogram()  # of those that were throttled
        self.total = Histogram()


class RequestMeter:
    __slots__ = (
        "_clock_ns", "_names", "_pass_ns", "_round_ns", "apis", "busy_ns", "bytes_in", "bytes_out", "idle_ns",
        "logs_requests", "now_ns", "passes", "replies", "requests",
    )  # fmt: skip

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._names = {int(api.key): api.name for api in apis()}
        self.apis: dict[int, ApiMeter] = {}
        self.now_ns = self._pass_ns = self._round_ns = clock_ns()
        self.bytes_in = self.bytes_out = self.requests = self.replies = self.passes = 0
        self.idle_ns = self.busy_ns = 0
        self.logs_requests = REQUEST_LOGGER.isEnabledFor(logging.DEBUG)

    # A pass

    def waits(self) -> None:
        now_ns = self._clock_ns()
        self.busy_ns += now_ns - self._pass_ns
        self.now_ns = now_ns

    def wakes(self) -> None:
        now_ns = self._clock_ns()
        self.idle_ns += now_ns - self.now_ns
        self.now_ns = self._pass_ns = self._round_ns = now_ns
        self.passes += 1

    # A request

    def taken(self, connection: Connection, frame: memoryview) -> None:
        """It goes to the broker now."""
        self.requests += 1
        size = len(frame)
        meter = None
        version = 0
        if size >= 4:
            meter = self.apis.get(frame[0] << 8 | frame[1])
            version = frame[2] << 8 | frame[3]
        if meter is None:
            meter = self._new_meter(frame)
        meter.versions[version if version < VERSIONS_MAX else VERSIONS_MAX] += 1
        meter.bytes.add(size)
        now_ns = self.now_ns
        meter.queue.add(now_ns - self._pass_ns)
        connection.meter = meter
        connection.read_ns = self._pass_ns
        connection.taken_ns = now_ns
        if self.logs_requests:
            connection.request = _describe(frame, meter.name)

    def _new_meter(self, frame: memoryview) -> ApiMeter:
        key = frame[0] << 8 | frame[1] if len(frame) >= 4 else -1
        if key not in self._names:
            key = -1
        meter = self.apis.get(key)
        if meter is None:
            meter = self.apis[key] = ApiMeter(self._names.get(key, OTHER))
        return meter

    def handled(self, connection: Connection) -> None:
        """The broker has returned, with a reply or without one."""
        now_ns = self.now_ns = self._clock_ns()
        meter = connection.meter
        if meter is not None:  # it may have been closed meanwhile
            meter.local.add(now_ns - connection.taken_ns)
        connection.handled_ns = now_ns

    def round_begins(self) -> None:
        """Requests are handed over from here on; what is answered before the round ends has not waited."""
        self.now_ns = self._round_ns = self._clock_ns()

    def round_ends(self, replies: int) -> None:
        """Replies have been taken from the broker."""
        self.replies += replies
        self.now_ns = self._clock_ns()

    def replied(self, connection: Connection, throttle_ms: int, *, is_sent: bool) -> None:
        """A reply is there; `is_sent`: there are no bytes of it to send."""
        meter = connection.meter
        if meter is None:
            return
        connection.meter = None
        now_ns = self.now_ns
        remote_ns = 0
        if connection.taken_ns < self._round_ns:
            remote_ns = now_ns - connection.handled_ns
            meter.remote.add(remote_ns)
        if throttle_ms:
            meter.throttle.add(throttle_ms * 1_000_000)
        if is_sent:
            meter.total.add(now_ns - connection.read_ns)
        else:
            connection.unsent.append((meter, connection.read_ns, now_ns))
        if self.logs_requests:
            self._log(connection, remote_ns, throttle_ms)

    def sent(self, connection: Connection) -> None:
        """All replies of a connection have been taken by its socket."""
        now_ns = self._clock_ns()
        for meter, read_ns, replied_ns in connection.unsent:
            meter.response.add(now_ns - replied_ns)
            meter.total.add(now_ns - read_ns)
        connection.unsent.clear()

    def _log(self, connection: Connection, remote_ns: int, throttle_ms: int) -> None:
        about = fields(
            **connection.request,
            client=connection.peer,
            listener=connection.context.listener,
            principal=connection.context.principal,
            queue_ms=(connection.taken_ns - connection.read_ns) / 1e6,
            local_ms=(connection.handled_ns - connection.taken_ns) / 1e6,
            remote_ms=remote_ns / 1e6,
            throttle_ms=throttle_ms,
        )
        REQUEST_LOGGER.debug("request answered", extra=about)


def _describe(frame: memoryview, name: str) -> dict[str, object]:
    """What the request log says of a request."""
    try:
        header, _ = read_request_header(frame)
    except ProtocolError:
        return {"api": name, "request_bytes": len(frame)}
    return {
        "api": name,
        "version": header.api_version,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
        "request_bytes": len(frame),
    }
