"""ConnectionQuota: how many connections an address may open per second (connection_creation_rate).

A connection above the limit is not served. It is held open for the computed throttle time, at most one step of the
window, and then closed. It is not counted, so a client that reconnects too early is not penalized further.
"""

from __future__ import annotations

import ipaddress

from tailrace.quota.limits import IP, Quotas
from tailrace.quota.rate import Rate, Windows
from tailrace.quota.rate_quota import throttle_ms

_QUOTA = "connection_creation_rate"


def _plain(name: str | None) -> str | None:
    """Return an address as sockets write it, whichever notation the quota uses."""
    if name is None:
        return None
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name  # a host name, which Kafka would resolve; here it matches no address
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


class ConnectionQuota:
    def __init__(self, windows: Windows) -> None:
        self.is_enabled = False
        self._windows = windows
        self._limits: dict[str | None, float] = {}
        self._written: dict[str | None, dict[str | None, float]] = {}  # by address: its limits as they are written
        self._rates: dict[str, Rate] = {}
        self._sweep_ms = 0

    def __len__(self) -> int:
        """Return the number of addresses with a rate."""
        return len(self._rates)

    def update(self, quotas: Quotas) -> None:
        """Replace the limits of some entities. An address may be written in several ways: the last limit wins."""
        for entity, values in quotas.items():
            names = dict(entity)
            if IP in names:
                address = _plain(names[IP])
                written = self._written.setdefault(address, {})
                written.pop(names[IP], None)
                if _QUOTA in values:
                    written[names[IP]] = values[_QUOTA]
                if written:
                    self._limits[address] = next(reversed(written.values()))
                else:
                    del self._written[address]
                    self._limits.pop(address, None)
        self.is_enabled = bool(self._limits)

    def record(self, host: str, now_ms: int) -> int:
        """Record a connection from an address. Return the throttle time, or 0 if the connection is within the limit."""
        limit = self._limits.get(host, self._limits.get(None))
        if limit is None:
            return 0
        if now_ms >= self._sweep_ms:
            self._sweep(now_ms)
        rate = self._rates.get(host)
        if rate is None:
            rate = self._rates[host] = Rate(self._windows, now_ms)
        rate.record(1, now_ms)
        pause_ms = throttle_ms(rate.observe(now_ms), limit, self._windows.size_ms)
        if pause_ms:
            rate.record(-1, now_ms)
        return pause_ms

    def _sweep(self, now_ms: int) -> None:
        self._sweep_ms = now_ms + self._windows.span_ms
        silent_ms = now_ms - self._windows.span_ms
        for host in [host for host, rate in self._rates.items() if rate.last_ms <= silent_ms]:
            del self._rates[host]
