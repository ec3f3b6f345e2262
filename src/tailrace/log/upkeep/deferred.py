"""Deferred: work that is due later, such as the removal of files some time after they were marked.

The log never starts a thread or reads a clock. Its owner calls `run_due` regularly.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from tailrace.model.topic_config import INT_MAX

Action: TypeAlias = Callable[[], None]


class Deferred:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Action]] = []
        self._order = count()
        self._on_earlier: Callable[[int], object] | None = None

    def add(self, due_ms: int, action: Action) -> None:
        is_earlier = not self._heap or due_ms < self._heap[0][0]
        heappush(self._heap, (due_ms, next(self._order), action))
        if is_earlier and self._on_earlier is not None:
            self._on_earlier(due_ms)

    def notify(self, on_earlier: Callable[[int], object]) -> None:
        """Call `on_earlier(due_ms)` now if there is work, and later whenever added work is due before the rest."""
        self._on_earlier = on_earlier
        if self._heap:
            on_earlier(self._heap[0][0])

    def run_due(self, now_ms: int, at_most: int = INT_MAX) -> int:
        """Run up to `at_most` actions that are due, in order of their time. Return their number."""
        done = 0
        while done < at_most and self._heap and self._heap[0][0] <= now_ms:
            action = heappop(self._heap)[2]
            action()
            done += 1
        return done

    @property
    def next_due_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def clear(self) -> None:
        self._heap.clear()

    def __len__(self) -> int:
        return len(self._heap)
