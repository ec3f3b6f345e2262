"""Throttling: what client quotas ask of requests.

Each call notes what a request has cost its client and says how long the connection has to pause once the answer is
sent. The answer itself is never held back (KIP-219); it tells the pause, and the server keeps it.

    request_percentage        the time that requests have taken of the one thread, from taking one to answering it or to
                              letting it wait; sending and receiving are not in it
    producer_byte_rate        the size of Produce requests
    consumer_byte_rate        the size of answers to Fetch; a client that is over it gets an answer without records
    controller_mutation_rate  partitions created and deleted
    connection_creation_rate  connections of an address

The client is told apart by its user, which is ANONYMOUS as long as nobody authenticates, and its client id.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.request_context import Request
from tailrace.quota.connection_quota import ConnectionQuota
from tailrace.quota.limits import Quotas
from tailrace.quota.mutation_quota import MutationQuota, MutationQuotas
from tailrace.quota.rate import Windows
from tailrace.quota.rate_quota import INT_MAX, RateQuota

_PERCENT_PER_NS = 100 / 1_000_000_000


class Throttling:
    def __init__(self, config: BrokerConfig, work_ns: Callable[[], int]) -> None:
        """`work_ns` is a clock for the time that requests take; any zero will do."""
        windows = windows_of(config, "quota.window")
        self.produce = RateQuota("producer_byte_rate", windows)
        self.fetch = RateQuota("consumer_byte_rate", windows)
        self.request = RateQuota("request_percentage", windows, longest_ms=windows.size_ms)
        self.mutation = MutationQuotas(windows_of(config, "controller.quota.window"))
        self.connection = ConnectionQuota(windows)
        self.is_on = False  # whether requests have to be looked at at all
        self._work_ns = work_ns
        self._current: int | None = None  # the connection whose request is at work
        self._began_ns = 0
        self._parked_ns: dict[int, int] = {}  # what requests that wait have taken, by connection

    def update(self, quotas: Quotas) -> None:
        """Other quotas from now on."""
        for one in (self.produce, self.fetch, self.request, self.mutation, self.connection):
            one.update(quotas)
        self.is_on = self.produce.is_enabled or self.fetch.is_enabled or self.request.is_enabled

    # The time of a request

    def begin(self, connection_id: int) -> None:
        """A request is taken, or taken up again after a pause."""
        self._current = connection_id
        self._began_ns = self._work_ns() - self._parked_ns.pop(connection_id, 0)

    def end(self) -> None:
        """Its handler is done: if it has not been answered, it waits."""
        if self._current is not None:
            self._parked_ns[self._current] = self._work_ns() - self._began_ns
            self._current = None

    def forget(self, connection_id: int) -> None:
        """The connection has gone."""
        self._parked_ns.pop(connection_id, None)

    def _taken_ns(self, connection_id: int) -> int:
        if connection_id == self._current:
            self._current = None
            return self._work_ns() - self._began_ns
        return self._parked_ns.pop(connection_id, 0)

    # What a request has cost, when it is answered: how long to pause

    def of_request(self, request: Request, now_ms: int) -> int:
        taken_ns = self._taken_ns(request.context.connection_id)
        if not self.request.is_enabled:
            return 0
        return self.request.record(*_who(request), taken_ns * _PERCENT_PER_NS, now_ms)

    def of_produce(self, request: Request, now_ms: int, *, is_answered: bool) -> int:
        """One without an answer (acks=0) is not throttled for its time."""
        pause_ms = self.produce.record(*_who(request), request.size, now_ms) if self.produce.is_enabled else 0
        if not is_answered:
            self._taken_ns(request.context.connection_id)
            return pause_ms
        return max(pause_ms, self.of_request(request, now_ms))

    def of_fetch(self, request: Request, size: int, now_ms: int) -> int:
        """If there is a pause, nothing of what was read may be sent: only then it does not count."""
        pause_ms = self.of_request(request, now_ms)
        if self.fetch.is_enabled:
            user, client_id = _who(request)
            pause_ms = max(pause_ms, self.fetch.record(user, client_id, size, now_ms))
            if pause_ms:
                self.fetch.take_back(user, client_id, size, now_ms)
        return pause_ms

    # What a request may cost

    def fetch_bytes_max(self, request: Request) -> int:
        """More bytes than this would be throttled in any case, and the client would never get on."""
        return self.fetch.most_at_once(*_who(request)) if self.fetch.is_enabled else INT_MAX

    def mutations(self, request: Request, now_ms: int, *, strict: bool) -> MutationQuota:
        return self.mutation.of(*_who(request), now_ms, strict=strict)


def windows_of(config: BrokerConfig, prefix: str) -> Windows:
    return Windows(config.integer(f"{prefix}.num"), config.integer(f"{prefix}.size.seconds") * 1_000)


def _who(request: Request) -> tuple[str, str]:
    """User and client id; no client id is like an empty one."""
    return request.context.principal.partition(":")[2], request.client_id or ""
