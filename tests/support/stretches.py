"""Stretches: a broker in memory whose turns end after one step, and which counts the work of each step.

    broker = Stretches()
    replies = broker.send(frame)
    assert broker.longest < LINES_MAX

A stretch is work on the loop without a pause: handling a frame, a tick, or applying the result of a chore. Its work is
the number of lines of Python that it runs, so the outcome does not depend on the machine. Chores run in between and are
not counted.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from tailrace.broker.requests.request_context import Reply
from tests.support.memory_node import NOW_MS, Client, start

LINES_MAX: Final = 250_000  # that many simple lines take some ten milliseconds
_PASSES_MAX: Final = 10_000


class Stretches:
    def __init__(self, static: dict[str, str] | None = None) -> None:
        self.chores: deque[Any] = deque()
        self.longest = 0  # lines of the longest stretch since the last `send` began
        self._questions = 0
        self.broker = start(static=static, submit=self.chores.append, is_turn_over=self._is_turn_over)
        self.client = Client(self.broker)

    def _is_turn_over(self) -> bool:
        """Let a pausable request take one step in each stretch. The broker asks before the request resumes and after
        each step.
        """
        self._questions += 1
        return self._questions > 2

    def send(self, frame: bytes) -> list[Reply]:
        """Send a frame and return the replies to it, after as many ticks and chores as it takes."""
        self.longest = 0
        data = memoryview(bytearray(frame))
        replies = self._stretch(lambda: self.broker.handle(data, self.client.context, NOW_MS))
        return replies or self.wait()

    def tick(self, now_ms: int = NOW_MS) -> None:
        """Let the broker do what is due."""
        self._stretch(lambda: self.broker.tick(now_ms))

    def wait(self) -> list[Reply]:
        """Return the next replies, after as many ticks and chores as it takes."""
        replies: list[Reply] = []
        for _ in range(_PASSES_MAX):
            if replies:
                return replies
            if self.chores:
                replies = self._run_chore(self.chores.popleft())
            replies += self._stretch(lambda: self.broker.tick(NOW_MS))
        raise AssertionError("the request is not answered")

    def _run_chore(self, chore: Any) -> list[Reply]:
        try:
            result = chore.run()
        except Exception as error:
            failure = error
            return self._stretch(lambda: chore.failed(failure, NOW_MS))
        return self._stretch(lambda: chore.apply(result, NOW_MS))

    def _stretch(self, call: Callable[[], object]) -> list[Reply]:
        count = _LineCount()
        self._questions = 0
        before = sys.gettrace()
        sys.settrace(count)
        try:
            call()
            replies = self.broker.take_replies()
        finally:
            sys.settrace(before)
        self.longest = max(self.longest, count.lines)
        return replies


class _LineCount:
    """A trace function. It has no reference to itself, so that it leaves nothing to the garbage collector."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> _LineCount:
        self.lines += event == "line"
        return self
