"""ConnectionLimits: the maximum number of connections, and the maximum rate of new ones.

A connection without a free slot, or above the rate, waits in the backlog: nothing is accepted until there is a slot or
the rate allows it. An address with too many connections is refused, since waiting would delay other clients. Kafka does
the same for `max.connections`, `max.connection.creation.rate` and `max.connections.per.ip`. The process's limit of
descriptors bounds the number of connections as well (`descriptors.py`).

A rate is an average over ten seconds, as in Kafka: the connections of ten seconds may arrive at once.
"""

from __future__ import annotations

from typing import Final

from tailrace.model.topic_config import INT_MAX
from tailrace.server.connections.descriptors import Descriptors
from tailrace.server.connections.held_sockets import HELD_MAX
from tailrace.server.settings import LimitSettings

RATE_WINDOW_S: Final = 10


class ConnectionLimits:
    def __init__(self, settings: LimitSettings, descriptors: Descriptors | None = None) -> None:
        self._settings = settings
        self._descriptors = descriptors or Descriptors()
        self._total = 0
        self._by_listener: dict[str, int] = {}
        self._by_host: dict[str, int] = {}
        self._rate = _rate_limit(settings.creation_rate_max)
        self._listener_rates: dict[str, _RateLimit] = {}

    @property
    def held_max(self) -> int:
        """The number of sockets that may be held off before they are closed."""
        return min(HELD_MAX, self._descriptors.connections_max // 4)

    def change(self, settings: LimitSettings) -> None:
        """Set other limits; open connections stay."""
        self._settings = settings
        self._rate = _rate_limit(settings.creation_rate_max)
        self._listener_rates.clear()

    def has_slot(self, listener: str) -> bool:
        """Return True if the limits allow one more connection on this listener."""
        listener_max = self._settings.listener_connections_max.get(listener, INT_MAX)
        connections_max = min(self._settings.connections_max, self._descriptors.connections_max)
        return self._total < connections_max and self._by_listener.get(listener, 0) < listener_max

    def is_reserved(self, descriptor: int) -> bool:
        """Return True if a socket with this descriptor would take from the reserve for files."""
        return descriptor >= self._descriptors.reserve_start

    def wait_ms(self, listener: str, now_ms: int) -> int:
        """Return how long the rates require to wait before the next connection, or 0."""
        rates = self._rates(listener)
        return max((rate.wait_ms(now_ms) for rate in rates), default=0)

    def admit(self, listener: str, host: str, now_ms: int) -> bool:
        """Count an accepted connection. Return False if its address has too many."""
        for rate in self._rates(listener):
            rate.take(now_ms)
        count = self._by_host.get(host, 0)
        if count >= self._settings.per_ip_overrides.get(host, self._settings.connections_per_ip_max):
            return False
        self._by_host[host] = count + 1
        self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
        self._total += 1
        return True

    def leave(self, listener: str, host: str) -> None:
        """Note that an admitted connection was closed."""
        self._total -= 1
        self._by_listener[listener] -= 1
        if self._by_host[host] == 1:
            del self._by_host[host]
        else:
            self._by_host[host] -= 1
        assert self._total >= 0
        assert self._by_listener[listener] >= 0

    def _rates(self, listener: str) -> list[_RateLimit]:
        rates = [] if self._rate is None else [self._rate]
        per_second = self._settings.listener_creation_rate_max.get(listener, INT_MAX)
        if per_second < INT_MAX:
            rates.append(self._listener_rates.setdefault(listener, _RateLimit(per_second)))
        return rates


class _RateLimit:
    """A token bucket that holds the connections of ten seconds, and fills at the rate."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left = float(per_second * RATE_WINDOW_S)
        self._filled_ms: int | None = None

    def wait_ms(self, now_ms: int) -> int:
        self._fill(now_ms)
        if self._left >= 1:
            return 0
        if self._per_second == 0:
            return RATE_WINDOW_S * 1_000
        return int((1 - self._left) * 1_000 / self._per_second) + 1

    def take(self, now_ms: int) -> None:
        self._fill(now_ms)
        self._left -= 1

    def _fill(self, now_ms: int) -> None:
        if self._filled_ms is not None:
            gained = max(now_ms - self._filled_ms, 0) * self._per_second / 1_000
            self._left = min(self._left + gained, float(self._per_second * RATE_WINDOW_S))
        self._filled_ms = now_ms


def _rate_limit(per_second: int) -> _RateLimit | None:
    return None if per_second >= INT_MAX else _RateLimit(per_second)
