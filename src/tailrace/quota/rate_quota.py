"""RateQuota: bytes per second, or percent of a thread's time, per owner of a limit.

`record` adds the usage of a client and returns the throttle time that brings it back to its limit:

    (observed - limit) / limit × the window over which it was observed

The usage of an owner is removed after one window without requests, so memory is bounded by the recently active clients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from tailrace.quota.limits import Owner, QuotaLimits, Quotas
from tailrace.quota.rate import ObservedRate, Rate, Windows

INT_MAX: Final = 2**31 - 1


def throttle_ms(observed: ObservedRate, limit: float, longest_ms: int = INT_MAX) -> int:
    """Return the throttle time after which the rate is within the limit without further usage; 0 if it is already."""
    if observed.per_second <= limit:
        return 0
    pause_ms = (observed.per_second - limit) / limit * observed.window_ms
    return min(math.floor(pause_ms + 0.5) if pause_ms < longest_ms else longest_ms, longest_ms)


class OwnerUsage(NamedTuple):
    owner: Owner
    per_second: float
    pause_ms: float  # the average of the pauses within the window


class RateQuota:
    def __init__(self, quota: str, windows: Windows, *, longest_ms: int = INT_MAX) -> None:
        self.limits = QuotaLimits(quota)
        self.is_enabled = False
        self._windows = windows
        self._longest_ms = longest_ms
        self._rates: dict[Owner, Rate] = {}
        self._pauses: dict[Owner, tuple[Rate, Rate]] = {}  # sums of milliseconds and of pauses, per throttled owner
        self._sweep_ms = 0

    def __len__(self) -> int:
        """Return the number of owners with a rate."""
        return len(self._rates)

    def update(self, quotas: Quotas) -> None:
        """Replace the limits of some entities. Earlier usage counts against the new limits."""
        self.limits.update(quotas)
        self.is_enabled = self.limits.is_enabled

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Record the usage of a client and return its throttle time."""
        owner = self.limits.owner(user, client_id)
        rate = self._rate(owner, now_ms)
        rate.record(value, now_ms)
        limit = self.limits.limit(owner)
        if limit is None:
            return 0
        pause_ms = throttle_ms(rate.observe(now_ms), limit, self._longest_ms)
        if pause_ms:
            self._note_pause(owner, pause_ms, now_ms)
        return pause_ms

    def _note_pause(self, owner: Owner, pause_ms: int, now_ms: int) -> None:
        noted = self._pauses.get(owner)
        if noted is None:
            noted = self._pauses[owner] = (Rate(self._windows, now_ms), Rate(self._windows, now_ms))
        noted[0].record(pause_ms, now_ms)
        noted[1].record(1, now_ms)

    def take_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Reverse a recorded usage that did not happen."""
        self._rate(self.limits.owner(user, client_id), now_ms).record(-value, now_ms)

    def largest_unthrottled(self, user: str, client_id: str) -> int:
        """Return the largest amount that is not throttled if nothing was used before."""
        limit = self.limits.limit(self.limits.owner(user, client_id))
        if limit is None:
            return INT_MAX
        return int(min(limit * (self._windows.samples - 1) * (self._windows.size_ms / 1_000), INT_MAX))

    def used(self, now_ms: int) -> Iterator[OwnerUsage]:
        """Yield the usage of each owner, for metrics."""
        for owner, rate in self._rates.items():
            paused_ms, pauses = 0.0, 0.0
            if owner in self._pauses:
                paused_ms, pauses = (one.observe(now_ms).per_second for one in self._pauses[owner])
            yield OwnerUsage(owner, rate.observe(now_ms).per_second, paused_ms / pauses if pauses else 0.0)

    def _rate(self, owner: Owner, now_ms: int) -> Rate:
        if now_ms >= self._sweep_ms:
            self._sweep(now_ms)
        rate = self._rates.get(owner)
        if rate is None:
            rate = self._rates[owner] = Rate(self._windows, now_ms)
        return rate

    def _sweep(self, now_ms: int) -> None:
        """Remove rates without a value for a whole window. They are equal to a new rate."""
        self._sweep_ms = now_ms + self._windows.span_ms
        silent_ms = now_ms - self._windows.span_ms
        for owner in [owner for owner, rate in self._rates.items() if rate.last_ms <= silent_ms]:
            del self._rates[owner]
            self._pauses.pop(owner, None)
