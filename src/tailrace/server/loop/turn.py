"""Turn: the time that requests which can pause may take of one pass of the loop."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

TURN_NS: Final = 2_000_000


class Turn:
    def __init__(self) -> None:
        self._ends_ns = 0

    def begin(self) -> None:
        self._ends_ns = perf_counter_ns() + TURN_NS

    def is_over(self) -> bool:
        return perf_counter_ns() >= self._ends_ns
