"""Turn: the time of one pass of the loop.

Requests that can pause have a part of it. When the pass is late, the connections that have not had their turn are
served in the next pass, after all others.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

TURN_NS: Final = 2_000_000
PASS_NS_MAX: Final = 5_000_000  # a client that sends much at once must not keep the others waiting for longer


class Turn:
    def __init__(self) -> None:
        self._ends_ns = self._late_ns = 0

    def begin(self) -> None:
        now_ns = perf_counter_ns()
        self._ends_ns, self._late_ns = now_ns + TURN_NS, now_ns + PASS_NS_MAX

    def is_over(self) -> bool:
        """Return True if requests that can pause should do so."""
        return perf_counter_ns() >= self._ends_ns

    def is_late(self) -> bool:
        """Return True if the pass should come to its end."""
        return perf_counter_ns() >= self._late_ns
