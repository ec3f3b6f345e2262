"""RetryBudget: the time limit of one request with its retries, and the growing pauses between them.

Pauses double from `backoff_ms` to `backoff_max_ms`. A random factor of up to 20 % keeps clients that failed together
from retrying together.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

from tailrace.client.settings import ClientSettings


class Clock(Protocol):
    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class SystemClock:
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class RetryBudget:
    def __init__(
        self,
        settings: ClientSettings,
        clock: Clock,
        *,
        budget_ms: int | None = None,
        spread: Callable[[float, float], float] = random.uniform,
    ) -> None:
        budget = settings.total_timeout_ms if budget_ms is None else budget_ms
        self._clock = clock
        self._spread = spread
        self._deadline = clock.monotonic() + budget / 1000
        self._pause = settings.backoff_ms / 1000
        self._pause_max = settings.backoff_max_ms / 1000

    @property
    def remaining_s(self) -> float:
        return max(0.0, self._deadline - self._clock.monotonic())

    def pause(self) -> bool:
        """Wait before the next attempt. Return False at once if the time is over."""
        remaining = self.remaining_s
        if remaining <= 0:
            return False
        self._clock.sleep(min(remaining, self._pause * self._spread(0.8, 1.2)))
        self._pause = min(self._pause * 2, self._pause_max)
        return True
