"""ThreadCalls: calls from other threads into the loop, and the results of chores that ran on other threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.server.loop.chores import Chores
from tailrace.server.loop.wakeup import WakeUp


class ThreadCalls:
    def __init__(self, chores: Chores, wakeup: WakeUp, errors: InternalErrors) -> None:
        self.chores = chores
        self._errors = errors
        self._wakeup = wakeup
        self._calls: deque[Callable[[], None]] = deque()
        self.descriptor = wakeup.descriptor

    def call_soon(self, function: Callable[[], None]) -> None:
        """Run a function on the loop, between two rounds. Only this method may be called from any thread."""
        self._calls.append(function)
        self._wakeup.set()

    def take(self, now_ms: int) -> None:
        """Run the waiting calls and apply the results of finished chores, on the loop."""
        self._wakeup.clear()
        while self._calls:
            try:
                self._calls.popleft()()
            except Exception as error:
                self._errors.survive("a call from another thread", error, now_ms)
        self.chores.apply_finished(now_ms, self._errors)
