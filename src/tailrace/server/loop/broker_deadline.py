"""BrokerDeadline: when the broker has to do something without an event.

The broker has many parts with deadlines, and a busy loop makes several passes in a millisecond. Deadlines are whole
milliseconds, so the parts are asked once in each. A busy loop waits for events at most until the next millisecond. A
pass without events, or after a tick, asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tailrace.server.broker_interface import BrokerCore

DAY_MS: Final = 86_400_000
_NEVER_MS: Final = -1


class BrokerDeadline:
    __slots__ = ("_asked_ms", "_broker", "_clock_ms", "_due_ms")

    def __init__(self, broker: BrokerCore, clock_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._clock_ms = clock_ms
        self._due_ms: int | None = None
        self._asked_ms = _NEVER_MS  # the time of the pass that asked the broker

    def wait_ms(self, pass_ms: int, is_busy: bool) -> int:
        """Return how long the loop may wait after a pass. `is_busy`: the pass had events."""
        if is_busy and pass_ms == self._asked_ms:
            return 1
        self._asked_ms = pass_ms
        self._due_ms = due_ms = self._broker.next_deadline_ms()
        return DAY_MS if due_ms is None else min(due_ms - self._clock_ms(), DAY_MS)

    def tick_if_due(self, now_ms: int) -> None:
        """Call the broker's `tick` if it is due."""
        if self._due_ms is not None and now_ms >= self._due_ms:
            self._asked_ms = _NEVER_MS
            self._broker.tick(now_ms)
