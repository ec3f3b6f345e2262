"""Chores: work that takes long, on a few threads; its results are applied on the loop.

One thread changes the broker. A chore is handed over by it, runs elsewhere on things that nobody changes, and its
result comes back through a queue and a wake-up. Chores start in the order they were submitted; with several threads
they may end in another. An exception of `run` goes to the chore's `failed`. An exception of `apply` or `failed` is an
internal error that costs this chore only.

Threads are started when the first chores come.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from tailrace.internal_errors import InternalErrors
from tailrace.server.broker_seam import Chore


class _Finished(NamedTuple):
    chore: Chore
    result: Any
    error: BaseException | None


class Chores:
    def __init__(self, threads_max: int, wake: Callable[[], None]) -> None:
        self._threads_max = threads_max
        self._wake = wake
        self._threads: list[threading.Thread] = []
        self._submitted: SimpleQueue[Chore | None] = SimpleQueue()
        self._finished: deque[_Finished] = deque()
        self._is_closed = False
        self.unfinished = 0  # submitted and not yet applied
        self.completed = 0
        self.failures = 0

    def submit(self, chore: Chore) -> None:
        """From the loop: run a chore soon. At the end what comes of a chore may be another one, which is not begun."""
        if self._is_closed:
            return
        self.unfinished += 1
        if len(self._threads) < min(self._threads_max, self.unfinished):
            thread = threading.Thread(target=self._work, name=f"tailrace-chore-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._submitted.put(chore)

    def apply_finished(self, now_ms: int, errors: InternalErrors) -> int:
        """On the loop: apply what has finished since; says how many chores did."""
        count = 0
        while self._finished:
            chore, result, error = self._finished.popleft()
            self.unfinished -= 1
            self.completed += 1
            count += 1
            try:
                if error is None:
                    chore.apply(result, now_ms)
                else:
                    self.failures += 1
                    chore.failed(error, now_ms)
            except Exception as unexpected:
                errors.survive("a chore", unexpected, now_ms)
        return count

    def close(self) -> None:
        """From the loop: wait until all threads have ended, with what was submitted done; results may still be
        applied."""
        self._is_closed = True
        for _ in self._threads:
            self._submitted.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (chore := self._submitted.get()) is not None:
            try:
                finished = _Finished(chore, chore.run(), None)
            except BaseException as error:
                finished = _Finished(chore, None, error)
            self._finished.append(finished)
            self._wake()
