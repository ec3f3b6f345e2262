"""The clocks: the wall's, one that only counts, and SteadyClock, which the broker is given.

The broker has one time, for timestamps as well as for deadlines. The wall clock can be set: forwards, and what waits is
answered early; backwards, and it would wait until the old time comes again. A SteadyClock follows the wall clock as
long as that moves on. When it is set back, it goes on at half speed until the wall clock has caught up: time never runs
backwards, deadlines come, and timestamps return to the truth.
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
        self._set_back: tuple[int, int] | None = None  # what this clock and the timer said when the wall was set back

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
