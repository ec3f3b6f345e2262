"""Deferred: work that is due later, such as the removal of files some time after they were marked.

The log never starts a thread or reads a clock. Its owner calls `run_due` regularly.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]


class Deferred:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Action]] = []
        self._order = count()
        self._on_first: Action | None = None

    def add(self, due_ms: int, action: Action) -> None:
        heappush(self._heap, (due_ms, next(self._order), action))
        if len(self._heap) == 1 and self._on_first is not None:
            self._on_first()

    def notify(self, on_first: Action) -> None:
        """Call `on_first` whenever work is added and there was none before."""
        self._on_first = on_first

    def run_due(self, now_ms: int) -> int:
        """Run the work that is due, in order of its time. Return how many actions were run."""
        done = 0
        while self._heap and self._heap[0][0] <= now_ms:
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
