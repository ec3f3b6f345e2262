"""Sweep: periodic work on all transactional ids, which pauses when the loop's turn is over."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.model.steps import Steps


class Sweep:
    def __init__(self, interval_ms: int, now_ms: int, begin: Callable[[int], Steps[None]]) -> None:
        self._interval_ms = interval_ms
        self._begin = begin
        self._due_ms = now_ms + interval_ms
        self._steps: Steps[None] | None = None

    def tick(self, now_ms: int, is_turn_over: Callable[[], bool]) -> None:
        """Begin the work if it is due. Run one step at least, and more until the turn is over."""
        is_new = self._steps is None and now_ms >= self._due_ms
        if is_new:
            self._due_ms = now_ms + self._interval_ms
            self._steps = self._begin(now_ms)
        while self._steps is not None:
            try:
                if is_new:
                    next(self._steps)
                else:
                    self._steps.send(now_ms)
            except StopIteration:
                self._steps = None
            is_new = False
            if is_turn_over():
                return

    def next_deadline_ms(self) -> int:
        return self._due_ms if self._steps is None else 0
