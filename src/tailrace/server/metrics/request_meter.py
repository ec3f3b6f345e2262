"""RequestMeter: counts and times the requests of each API in the loop.

    read from the socket ─queue─► handed to the broker ─local─► it returns ─remote─► the reply is there ─response─► sent
    └──────────────────────────────────────────────── total ──────────────────────────────────────────────────────────┘

These are Kafka's names. `queue` is the time that other requests of the same pass take. `remote` is the time in the
purgatory, and 0 for most requests, so only the others are added. The replies of a connection are in order, so its open
requests are a short queue.

The clock is read once after each request, before and after a round, and after sending to a connection. Every request
comes through here, so the cost matters. Most queue times are below the first bound; they are only added to the sum, and
the histogram's reader adds the missing counts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from struct import Struct
from typing import Final

from tailrace.metrics.histogram import TIME_BOUNDS_NS
from tailrace.model.log_fields import fields
from tailrace.protocol.api_keys import apis
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header
from tailrace.server.connections.connection import Connection
from tailrace.server.metrics.api_meter import ApiMeter, RequestTimes, VersionMeter

REQUEST_LOGGER: Final = logging.getLogger("tailrace.request")
OTHER: Final = "other"  # the name for unknown APIs
VERSIONS_MAX: Final = 32
_HEAD: Final = Struct(">I").unpack_from  # an API's key and version
_SHORT_NS: Final = TIME_BOUNDS_NS[0]


class RequestMeter:
    __slots__ = (
        "_by_head", "_clock_ns", "_names", "_pass_ns", "_round_ns", "apis", "busy_ns", "bytes_in", "bytes_out",
        "idle_ns", "logs_requests", "now_ns", "passes", "replies", "requests",
    )  # fmt: skip

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._names = {int(api.key): api.name for api in apis()}
        self.apis: dict[int, ApiMeter] = {}
        self._by_head: dict[int, VersionMeter] = {}
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
        """Note that a request goes to the broker now."""
        self.requests += 1
        size = len(frame)
        version = self._by_head.get(_HEAD(frame)[0]) if size >= 4 else None
        if version is None:
            version = self._version(frame)
        version.requests += 1
        meter = version.api
        meter.bytes += size
        meter.sizes[size.bit_length()] += 1
        times = RequestTimes(meter, self._pass_ns, self.now_ns)
        connection.metered.append(times)
        queue_ns = times.taken_ns - times.read_ns
        if queue_ns > _SHORT_NS:
            meter.queue.add(queue_ns)
        else:
            meter.queue.add_lowest(queue_ns)
        if self.logs_requests:
            times.request = _describe(frame, meter.name)

    def _version(self, frame: memoryview) -> VersionMeter:
        """Return a new version's meter, or the common one for unknown APIs, so that clients cannot create many."""
        head = _HEAD(frame)[0] if len(frame) >= 4 else 0xFFFF_FFFF
        key, number = head >> 16, min(head & 0xFFFF, VERSIONS_MAX)
        if key not in self._names:
            key, number = -1, VERSIONS_MAX
        api = self.apis.get(key)
        if api is None:
            api = self.apis[key] = ApiMeter(self._names.get(key, OTHER))
        version = api.versions.get(number)
        if version is None:
            version = api.versions[number] = VersionMeter(api)
        if number < VERSIONS_MAX:
            self._by_head[head] = version
        return version

    def handled(self, connection: Connection) -> None:
        """Note that the broker has returned, with or without a reply."""
        now_ns = self.now_ns = self._clock_ns()
        connection.metered[-1].handled(now_ns)

    def round_begins(self) -> None:
        """Begin a round. Requests that are answered before its end did not wait."""
        self.now_ns = self._round_ns = self._clock_ns()

    def round_ends(self, replies: int) -> None:
        """Note that the replies were taken from the broker."""
        self.replies += replies
        self.now_ns = self._clock_ns()

    def replied(self, connection: Connection, throttle_ms: int, *, is_sent: bool) -> None:
        """Note a reply; `is_sent` if it has no bytes to send."""
        times = connection.metered.popleft()
        meter = times.meter
        now_ns = self.now_ns
        remote_ns = 0
        if times.taken_ns < self._round_ns:
            remote_ns = now_ns - times.handled_ns
            meter.remote.add(remote_ns)
        if throttle_ms:
            meter.throttle.add(throttle_ms * 1_000_000)
        if is_sent:
            meter.total.add(now_ns - times.read_ns)
        else:
            connection.unsent.append((meter, times.read_ns, now_ns))
        if self.logs_requests:
            self._log(connection, times, remote_ns, throttle_ms)

    def sent(self, connection: Connection) -> None:
        """Note that the socket has taken all replies of a connection."""
        now_ns = self._clock_ns()
        for meter, read_ns, replied_ns in connection.unsent:
            meter.response.add(now_ns - replied_ns)
            meter.total.add(now_ns - read_ns)
        connection.unsent.clear()

    def _log(self, connection: Connection, times: RequestTimes, remote_ns: int, throttle_ms: int) -> None:
        about = fields(
            **times.request,
            client=connection.peer,
            listener=connection.context.listener,
            principal=connection.context.principal,
            queue_ms=(times.taken_ns - times.read_ns) / 1e6,
            local_ms=(times.handled_ns - times.taken_ns) / 1e6,
            remote_ms=remote_ns / 1e6,
            throttle_ms=throttle_ms,
        )
        REQUEST_LOGGER.debug("request answered", extra=about)


class UntimedMeter(RequestMeter):
    """A meter that only counts, for a server whose request times nobody reads."""

    __slots__ = ()

    def waits(self) -> None:
        """Do nothing, like the empty methods below."""

    def wakes(self) -> None:
        self.passes += 1

    def round_begins(self) -> None:
        pass

    def taken(self, connection: Connection, frame: memoryview) -> None:
        self.requests += 1

    def handled(self, connection: Connection) -> None:
        pass

    def round_ends(self, replies: int) -> None:
        self.replies += replies

    def replied(self, connection: Connection, throttle_ms: int, *, is_sent: bool) -> None:
        pass

    def sent(self, connection: Connection) -> None:
        pass


def make_meter(*, serves_metrics: bool) -> RequestMeter:
    """Return a meter. It measures times if metrics are served or the request log is on."""
    return RequestMeter() if serves_metrics or REQUEST_LOGGER.isEnabledFor(logging.DEBUG) else UntimedMeter()


def _describe(frame: memoryview, name: str) -> dict[str, object]:
    """Return the fields of the request log for a request."""
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
