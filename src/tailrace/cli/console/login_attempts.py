"""LoginAttempts: limits the failed logins of each address, so that a console does not help with guessing passwords.

An attempt counts when it begins, and no longer if it succeeds. So attempts at the same time are limited as well. IPv6
addresses of one /64 network count together. Visitors behind one proxy share an address.
"""

from __future__ import annotations

import ipaddress
import math
from collections import deque
from collections.abc import Callable
from typing import Final

FAILURES_MAX: Final = 10
WINDOW_S: Final = 300.0
ADDRESSES_MAX: Final = 10_000


class LoginAttempts:
    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._begun: dict[str, deque[float]] = {}  # by address, the one with the oldest latest attempt first

    def begin(self, address: str) -> int:
        """Count an attempt. Return 0, or after how many seconds the address may try again."""
        key, now_s = _network(address), self._clock_s()
        times = self._begun.pop(key, None) or deque[float](maxlen=FAILURES_MAX)
        while times and now_s - times[0] >= WINDOW_S:
            times.popleft()
        self._begun[key] = times
        if len(times) == FAILURES_MAX:
            return math.ceil(times[0] + WINDOW_S - now_s)
        times.append(now_s)
        if len(self._begun) > ADDRESSES_MAX:
            del self._begun[next(iter(self._begun))]
        return 0

    def succeeded(self, address: str) -> None:
        """Do not count the latest attempt of an address."""
        times = self._begun.get(_network(address))
        if times:
            times.pop()


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))
