"""SerialWork: work for one log directory on another thread, one piece after another.

It creates logs and writes epochs and checkpoints. The order matters, because the name of a folder may be used again: a
write for a deleted log must not reach the new log of the same name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from tailrace.log.disk.files import Files
from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage
from tailrace.waiting.chore import Chore

Submit: TypeAlias = Callable[[Chore], None]


class Task:
    """A task without a result."""

    def __init__(self, run: Callable[[], object], on_failure: Callable[[OSError], object]) -> None:
        self.run = run
        self._on_failure = on_failure

    def apply(self, result: object, now_ms: int) -> None:
        """Do nothing: the task is complete."""

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)


class FolderSync:
    """The sync of a log's folder."""

    def __init__(
        self, files: Files, path: str, synced: Callable[[], object], on_failure: Callable[[OSError], object]
    ) -> None:
        self._files = files
        self._path = path
        self._synced = synced
        self._on_failure = on_failure

    def run(self) -> None:
        """Sync the folder. This may run on any thread. A folder that was renamed meanwhile belongs to a deleted log."""
        with suppress(FileNotFoundError):
            self._files.sync_directory(self._path)

    def apply(self, result: None, now_ms: int) -> None:
        self._synced()

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)


class RetriedWork:
    """The work of `retrying_submit`."""

    def __init__(self, work: Chore, again: Callable[[Chore, OSError, int], None]) -> None:
        self.work = work
        self._again = again
        self.run = work.run
        self.apply = work.apply

    def failed(self, error: BaseException, now_ms: int) -> None:
        if is_shortage(error):
            self._again(self, error, now_ms)
        else:
            self.work.failed(error, now_ms)


def retrying_submit(
    submit: Submit, later: Callable[[int, Callable[[], None]], None], on_failure: Callable[[OSError], object]
) -> Submit:
    """Return a `submit` that submits work again while the process is short of descriptors or memory.

    `later(due_ms, action)` runs an action at its time.
    """

    def again(work: Chore, error: OSError, now_ms: int) -> None:
        on_failure(error)
        later(now_ms + SHORTAGE_RETRY_MS, partial(submit, work))

    return lambda work: submit(RetriedWork(work, again))


class SerialWork:
    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._waiting: deque[Chore] = deque()
        self._current: Chore | None = None

    def add(self, work: Chore) -> None:
        self._waiting.append(work)
        self._start_next()

    def _start_next(self) -> None:
        if self._current is None and self._waiting:
            self._current = self._waiting.popleft()
            self._submit(self)

    def run(self) -> Any:
        """Run the first piece of waiting work. This may run on any thread."""
        assert self._current is not None
        return self._current.run()

    def apply(self, result: Any, now_ms: int) -> None:
        self._take_current().apply(result, now_ms)
        self._start_next()

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._take_current().failed(error, now_ms)
        self._start_next()

    def _take_current(self) -> Chore:
        work, self._current = self._current, None
        assert work is not None
        return work
