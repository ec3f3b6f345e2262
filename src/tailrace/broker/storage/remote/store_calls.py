"""StoreCalls: the calls of a remote store that run on other threads, and their deadlines.

A store can block forever, for example on a network disk whose server is gone. The loop then ends the call: its task
continues with an error, and its thread is abandoned. The process replaces abandoned threads, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tailrace.tiers.steps import Work

_CHECK_MS: Final = 1_000  # how often the running calls are checked


class StoreCalls:
    def __init__(
        self,
        submit: Callable[[str, Work, int], None],
        abandon: Callable[[str, Work], None],
        threads_of: Callable[[str], int],
        now_ms: int,
    ) -> None:
        """`submit(lane, work, threads)` and `abandon(lane, work)` are those of the process. `threads_of(lane)` returns
        the current size of a lane."""
        self._submit = submit
        self._abandon = abandon
        self._threads_of = threads_of
        self._calls: dict[Work, str] = {}  # with their lanes
        self._checked_ms = now_ms
        self.ended = 0  # calls that were ended at their deadline

    def submit(self, lane: str, work: Work) -> None:
        """Run work on a thread of a lane, up to its deadline."""
        self._calls[work] = lane
        self._submit(lane, work, self._threads_of(lane))

    def tick(self, now_ms: int) -> None:
        self._checked_ms = now_ms
        for work, lane in list(self._calls.items()):
            if work.has_ended:
                del self._calls[work]
            elif work.is_late(now_ms):
                del self._calls[work]
                self.ended += 1
                self._abandon(lane, work)
                work.expire(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._checked_ms + _CHECK_MS if self._calls else None
