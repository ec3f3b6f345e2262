"""TimedParts: the services of the broker that have deadlines.

A service that raises an exception is paused for a second. Other services are not affected.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.diagnostics.internal_errors import InternalErrors

PAUSE_MS = 1_000


class TimedParts:
    def __init__(self, errors: InternalErrors) -> None:
        self._errors = errors
        self._parts: list[_Part] = []

    def add(self, name: str, tick: Callable[[int], object], next_deadline_ms: Callable[[], int | None]) -> None:
        """Add a service. `tick` does its due work. `next_deadline_ms` returns when to call `tick` next, or None."""
        self._parts.append(_Part(name, tick, next_deadline_ms))

    def tick(self, now_ms: int) -> None:
        for part in self._parts:
            if part.paused_until_ms <= now_ms:
                try:
                    part.tick(now_ms)
                except Exception as error:
                    part.paused_until_ms = now_ms + PAUSE_MS
                    self._errors.survive(part.name, error, now_ms)

    def next_deadline_ms(self) -> int | None:
        earliest_ms = None
        for part in self._parts:
            due_ms = part.next_deadline_ms()
            if due_ms is not None:
                if due_ms < part.paused_until_ms:
                    due_ms = part.paused_until_ms
                if earliest_ms is None or due_ms < earliest_ms:
                    earliest_ms = due_ms
        return earliest_ms


class _Part:
    __slots__ = ("name", "next_deadline_ms", "paused_until_ms", "tick")

    def __init__(self, name: str, tick: Callable[[int], object], next_deadline_ms: Callable[[], int | None]) -> None:
        self.name = name
        self.tick = tick
        self.next_deadline_ms = next_deadline_ms
        self.paused_until_ms = 0
