"""DelayedCommit: a coordinator's response that waits until its records are on every in-sync replica."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.model.errors import ErrorCode
from tailrace.waiting.purgatory import DelayedOperation


class DelayedCommit(DelayedOperation):
    __slots__ = ("_finish", "_verdict")

    def __init__(
        self, verdict: Callable[[], ErrorCode | None], finish: Callable[[ErrorCode, int], None], deadline_ms: int
    ) -> None:
        """`verdict()` returns None while the response has to wait. `finish(code, now_ms)` is called once."""
        super().__init__(deadline_ms)
        self._verdict = verdict
        self._finish = finish

    def try_complete(self, now_ms: int) -> bool:
        code = self._verdict()
        if code is None:
            return False
        self._finish(code, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._finish(ErrorCode.REQUEST_TIMED_OUT, now_ms)
