"""Timers: operations of a shard that are due later, by name. `schedule` replaces a timer, `cancel` removes it.

Each heartbeat moves its member's timer further away. So moving a timer only notes its new deadline. Its entry in the
heap is moved when the old deadline is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

from tailrace.coordinator.shard import StateChange

TimedOperation: TypeAlias = Callable[[int], "StateChange[Any] | None"]  # now_ms → a change, or None


class DueTimer(NamedTuple):
    key: Hashable
    operation: TimedOperation


class _Timer:
    __slots__ = ("deadline_ms", "operation", "placed_ms")

    def __init__(self, deadline_ms: int, operation: TimedOperation) -> None:
        self.deadline_ms = deadline_ms
        self.operation = operation
        self.placed_ms = deadline_ms  # its entry in the heap


class Alarm:
    """The earliest deadline of many Timers, so that not each of them has to be asked; it may be a little early."""

    __slots__ = ("next_ms",)

    def __init__(self) -> None:
        self.next_ms: int | None = None

    def set(self, deadline_ms: int) -> None:
        if self.next_ms is None or deadline_ms < self.next_ms:
            self.next_ms = deadline_ms

    def clear(self) -> None:
        self.next_ms = None


class Timers:
    def __init__(self, alarm: Alarm | None = None) -> None:
        self._alarm = alarm or Alarm()
        self._timers: dict[Hashable, _Timer] = {}
        self._heap: list[tuple[int, int, Hashable, _Timer]] = []
        self._count = 0
        self._earliest_ms: int | None = None  # while timers run: the earliest deadline for new timers

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def schedule(self, key: Hashable, deadline_ms: int, operation: TimedOperation) -> None:
        """Run an operation at a deadline, instead of the present operation of that name."""
        if self._earliest_ms is not None and deadline_ms < self._earliest_ms:
            deadline_ms = self._earliest_ms
        timer = self._timers.get(key)
        if timer is not None and timer.placed_ms <= deadline_ms:
            timer.deadline_ms = deadline_ms
            timer.operation = operation
            return
        self._place(key, _Timer(deadline_ms, operation))

    def _place(self, key: Hashable, timer: _Timer) -> None:
        self._timers[key] = timer
        timer.placed_ms = timer.deadline_ms
        self._alarm.set(timer.placed_ms)
        self._count += 1
        heappush(self._heap, (timer.placed_ms, self._count, key, timer))

    def cancel(self, key: Hashable) -> None:
        self._timers.pop(key, None)

    def clear(self) -> None:
        self._timers.clear()
        self._heap.clear()

    def next_deadline_ms(self) -> int | None:
        """Return a time not after the first deadline; it may be earlier if a timer has moved."""
        heap = self._heap
        while heap and self._timers.get(heap[0][2]) is not heap[0][3]:
            heappop(heap)
        return heap[0][0] if heap else None

    def begin_run(self, now_ms: int) -> None:
        """Let no new timer be due at `now_ms` until `end_run`, because a timer that reschedules itself would run
        forever."""
        self._earliest_ms = now_ms + 1

    def end_run(self) -> None:
        self._earliest_ms = None

    def take_due(self, now_ms: int) -> DueTimer | None:
        """Remove and return the first timer whose deadline has passed."""
        while (placed_ms := self.next_deadline_ms()) is not None and placed_ms <= now_ms:
            _, _, key, timer = heappop(self._heap)
            if timer.deadline_ms <= now_ms:
                del self._timers[key]
                return DueTimer(key, timer.operation)
            self._place(key, timer)
        return None
