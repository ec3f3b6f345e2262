"""Chores: long work on a few threads, whose results are applied on the loop.

Only the loop's thread changes the broker. It submits a chore, which runs on another thread with objects that nobody
changes. The result returns through a queue and a wake-up. Chores start in the order of submission; with several threads
they may end in another order. An exception of `run` goes to the chore's `failed`. An exception of `apply` or `failed`
is an internal error that affects this chore only.

Threads are started with the first chores. Chores for which a client waits are prompt (`is_prompt`): they have their own
threads, so that they do not wait for a compaction or a sync.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.waiting.chore import Chore


class _Finished(NamedTuple):
    chore: Chore
    result: Any
    error: BaseException | None


class _Lane:
    """Threads that run the chores of one queue."""

    def __init__(self, name: str, threads_max: int, work: Callable[[SimpleQueue[Chore | None]], None]) -> None:
        self._name = name
        self._threads_max = threads_max
        self._work = work
        self._threads: list[threading.Thread] = []
        self._submitted: SimpleQueue[Chore | None] = SimpleQueue()

    def submit(self, chore: Chore, unfinished: int) -> None:
        number = len(self._threads)
        if number < min(self._threads_max, unfinished):
            name = f"tailrace-{self._name}-{number}"
            thread = threading.Thread(target=self._work, args=(self._submitted,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._submitted.put(chore)

    def close(self) -> None:
        for _ in self._threads:
            self._submitted.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()


class Chores:
    def __init__(self, threads_max: int, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lane = _Lane("chore", threads_max, self._run_chores)
        self._prompt_lane = _Lane("prompt-chore", threads_max, self._run_chores)
        self._finished: deque[_Finished] = deque()
        self._is_closed = False
        self.unfinished = 0  # submitted and not yet applied
        self.completed = 0
        self.failures = 0

    def submit(self, chore: Chore) -> None:
        """Run a chore soon; called on the loop. While closing, a chore that the result of another submits is not
        run."""
        if self._is_closed:
            return
        self.unfinished += 1
        lane = self._prompt_lane if getattr(chore, "is_prompt", False) else self._lane
        lane.submit(chore, self.unfinished)

    def apply_finished(self, now_ms: int, errors: InternalErrors) -> int:
        """Apply the results of finished chores; called on the loop. Return their number."""
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
        """Wait until all submitted chores have run and the threads have ended; called on the loop. Results may still
        be applied after that."""
        self._is_closed = True
        self._prompt_lane.close()
        self._lane.close()

    def _run_chores(self, submitted: SimpleQueue[Chore | None]) -> None:
        while (chore := submitted.get()) is not None:
            try:
                finished = _Finished(chore, chore.run(), None)
            except BaseException as error:
                finished = _Finished(chore, None, error)
            self._finished.append(finished)
            self._wake()
