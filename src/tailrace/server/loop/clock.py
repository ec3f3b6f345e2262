"""The clocks: wall clock, monotonic clock, and SteadyClock, which the broker uses.

The broker has one time, for timestamps and for deadlines. The wall clock can be set: forwards, and operations expire
too early; backwards, and they would wait until the old time is reached again. A SteadyClock follows the wall clock.
When the wall clock is set back, it runs at half speed until the wall clock has caught up. So time never goes back,
deadlines are reached, and timestamps become correct again.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class SteadyClock:
    def __init__(self, wall_ms: Callable[[], int], timer_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms
        self._timer_ms = timer_ms
        self._last_ms = wall_ms()
        self._set_back: tuple[int, int] | None = None  # this clock and the timer, when the wall clock was set back

    def __call__(self) -> int:
        now_ms = self._wall_ms()
        if now_ms >= self._last_ms:
            self._last_ms = now_ms
            self._set_back = None
            return now_ms
        if self._set_back is None:
            self._set_back = (self._last_ms, self._timer_ms())
        last_ms, timer_ms = self._set_back
        self._last_ms = max(last_ms + (self._timer_ms() - timer_ms) // 2, self._last_ms)
        return self._last_ms
