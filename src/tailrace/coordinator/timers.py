"""Timers: what a shard has to do later, by name: `schedule` again moves it, `cancel` forgets it.

A heartbeat moves its member's timer and comes often. So a timer that moves further away is only noted; its place in the
heap is looked at when it is reached, and put where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

from tailrace.coordinator.shard import StateChange

TimedOperation: TypeAlias = Callable[[int], "StateChange[Any] | None"]  # now_ms → what it changes, if anything


class Due(NamedTuple):
    key: Hashable
    operation: TimedOperation


class _Timer:
    __slots__ = ("deadline_ms", "operation", "placed_ms")

    def __init__(self, deadline_ms: int, operation: TimedOperation) -> None:
        self.deadline_ms = deadline_ms
        self.operation = operation
        self.placed_ms = deadline_ms  # where the heap has it


class Alarm:
    """When the first of many Timers may be due, so that nobody has to ask each of them; sometimes a little early."""

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
        self._earliest_ms: int | None = None  # while timers run: what they schedule is not due before

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def schedule(self, key: Hashable, deadline_ms: int, operation: TimedOperation) -> None:
        """Do it once the deadline has come, instead of what is scheduled under that name."""
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
        """Not later than the first timer; a little earlier where that has moved."""
        heap = self._heap
        while heap and self._timers.get(heap[0][2]) is not heap[0][3]:
            heappop(heap)
        return heap[0][0] if heap else None

    def begin_run(self, now_ms: int) -> None:
        """Until `end_run` no new timer is due at `now_ms`: a timer that schedules itself again would run forever."""
        self._earliest_ms = now_ms + 1

    def end_run(self) -> None:
        self._earliest_ms = None

    def take_due(self, now_ms: int) -> Due | None:
        """The first timer whose deadline has come; it is forgotten."""
        while (placed_ms := self.next_deadline_ms()) is not None and placed_ms <= now_ms:
            _, _, key, timer = heappop(self._heap)
            if timer.deadline_ms <= now_ms:
                del self._timers[key]
                return Due(key, timer.operation)
            self._place(key, timer)
        return None
