"""Throttling: client quotas.

Each call records the cost of a request and returns how long its connection has to pause after the response. The
response itself is never held back (KIP-219): it contains the throttle time, and the server enforces the pause.

    request_percentage        time that requests take on the event loop's thread; sending, receiving and waiting
                              do not count
    producer_byte_rate        size of Produce requests
    consumer_byte_rate        size of Fetch responses; a client above it gets a response without records
    controller_mutation_rate  partitions created and deleted
    connection_creation_rate  connections per address

A quota belongs to a user (ANONYMOUS for unauthenticated clients) and a client id.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import Request
from tailrace.quota.connection_quota import ConnectionQuota
from tailrace.quota.limits import Quotas
from tailrace.quota.mutation_quota import MutationQuota, MutationQuotas
from tailrace.quota.rate import Windows
from tailrace.quota.rate_quota import INT_MAX, RateQuota

_PERCENT_PER_NS = 100 / 1_000_000_000


class Throttling:
    def __init__(self, config: BrokerConfig, work_ns: Callable[[], int]) -> None:
        """`work_ns` is the clock for request_percentage, in nanoseconds from any starting point."""
        windows = windows_of(config, "quota.window")
        self.produce = RateQuota("producer_byte_rate", windows)
        self.fetch = RateQuota("consumer_byte_rate", windows)
        self.request = RateQuota("request_percentage", windows, longest_ms=windows.size_ms)
        self.mutation = MutationQuotas(windows_of(config, "controller.quota.window"))
        self.connection = ConnectionQuota(windows)
        self.is_on = False  # True if a produce, fetch or request quota is set
        self._work_ns = work_ns
        self._current: int | None = None  # the connection whose request is running
        self._began_ns = 0
        self._parked_ns: dict[int, int] = {}  # by connection: time already taken by a request that waits

    def update(self, quotas: Quotas) -> None:
        """Apply changed quotas."""
        for one in (self.produce, self.fetch, self.request, self.mutation, self.connection):
            one.update(quotas)
        self.is_on = self.produce.is_enabled or self.fetch.is_enabled or self.request.is_enabled

    # The time of a request

    def begin(self, connection_id: int) -> None:
        """Start the clock of a request that begins or resumes."""
        self._current = connection_id
        self._began_ns = self._work_ns() - self._parked_ns.pop(connection_id, 0)

    def end(self) -> None:
        """Stop the clock of the running request. If it has no response yet, its time so far is kept."""
        if self._current is not None:
            self._parked_ns[self._current] = self._work_ns() - self._began_ns
            self._current = None

    def forget(self, connection_id: int) -> None:
        """Forget the request of a connection that was closed."""
        self._parked_ns.pop(connection_id, None)

    def _taken_ns(self, connection_id: int) -> int:
        if connection_id == self._current:
            self._current = None
            return self._work_ns() - self._began_ns
        return self._parked_ns.pop(connection_id, 0)

    # The cost of a request at its response. Each method returns how long the connection pauses

    def of_request(self, request: Request, now_ms: int) -> int:
        taken_ns = self._taken_ns(request.context.connection_id)
        if not self.request.is_enabled:
            return 0
        return self.request.record(*_who(request), taken_ns * _PERCENT_PER_NS, now_ms)

    def of_produce(self, request: Request, now_ms: int, *, is_answered: bool) -> int:
        """Record a Produce request. Without a response (acks=0), request_percentage does not throttle it."""
        pause_ms = self.produce.record(*_who(request), request.size, now_ms) if self.produce.is_enabled else 0
        if not is_answered:
            self._taken_ns(request.context.connection_id)
            return pause_ms
        return max(pause_ms, self.of_request(request, now_ms))

    def of_fetch(self, request: Request, size: int, now_ms: int) -> int:
        """Record a Fetch response. If there is a pause, no records may be sent, and their size does not count."""
        pause_ms = self.of_request(request, now_ms)
        if self.fetch.is_enabled:
            user, client_id = _who(request)
            pause_ms = max(pause_ms, self.fetch.record(user, client_id, size, now_ms))
            if pause_ms:
                self.fetch.take_back(user, client_id, size, now_ms)
        return pause_ms

    # Limits of a request

    def fetch_bytes_max(self, request: Request) -> int:
        """Return the largest response that the quota can ever allow; a client would never get a larger one."""
        return self.fetch.largest_unthrottled(*_who(request)) if self.fetch.is_enabled else INT_MAX

    def mutations(self, request: Request, now_ms: int, *, strict: bool) -> MutationQuota:
        return self.mutation.of(*_who(request), now_ms, strict=strict)


def windows_of(config: BrokerConfig, prefix: str) -> Windows:
    return Windows(config.integer(f"{prefix}.num"), config.integer(f"{prefix}.size.seconds") * 1_000)


def _who(request: Request) -> tuple[str, str]:
    """Return the user and the client id. A missing client id counts as empty."""
    return request.context.principal.partition(":")[2], request.client_id or ""
