"""SerialWork: what is done for one log directory beside the thread that changes it, one thing after another.

Logs are made, epochs and checkpoints are written so. In order, since a folder's name may be used again: what is written
for a log that was deleted must not meet the log that is made in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage


class Work(Protocol):
    """A chore: `run` on any thread, then `apply` or `failed` where the logs are changed."""

    def run(self) -> Any: ...
    def apply(self, result: Any, now_ms: int) -> None: ...
    def failed(self, error: BaseException, now_ms: int) -> None: ...


Submit: TypeAlias = Callable[[Work], None]


def do_at_once(work: Work, now_ms: int) -> None:
    """Where nobody else can do it."""
    try:
        result = work.run()
    except Exception as error:
        work.failed(error, now_ms)
    else:
        work.apply(result, now_ms)


class Task:
    """Work of which nothing comes."""

    def __init__(self, run: Callable[[], object], on_failure: Callable[[OSError], object]) -> None:
        self.run = run
        self._on_failure = on_failure

    def apply(self, result: object, now_ms: int) -> None:
        """It is done."""

    def failed(self, error: BaseException, now_ms: int) -> None:
        if not isinstance(error, OSError):
            raise error
        self._on_failure(error)


class PatientWork:
    """Work of `patient_submit`."""

    def __init__(self, work: Work, again: Callable[[Work, OSError, int], None]) -> None:
        self.work = work
        self._again = again
        self.run = work.run
        self.apply = work.apply

    def failed(self, error: BaseException, now_ms: int) -> None:
        if is_shortage(error):
            self._again(self, error, now_ms)
        else:
            self.work.failed(error, now_ms)


def patient_submit(
    submit: Submit, later: Callable[[int, Callable[[], None]], None], on_failure: Callable[[OSError], object]
) -> Submit:
    """Return a `submit` whose work is submitted again while the process is short of descriptors or memory.

    `later(due_ms, action)` runs an action at its time."""

    def again(work: Work, error: OSError, now_ms: int) -> None:
        on_failure(error)
        later(now_ms + SHORTAGE_RETRY_MS, partial(submit, work))

    return lambda work: submit(PatientWork(work, again))


class SerialWork:
    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._waiting: deque[Work] = deque()
        self._current: Work | None = None

    def add(self, work: Work) -> None:
        self._waiting.append(work)
        self._go_on()

    def _go_on(self) -> None:
        if self._current is None and self._waiting:
            self._current = self._waiting.popleft()
            self._submit(self)

    def run(self) -> Any:
        """On any thread: the first of what waits."""
        assert self._current is not None
        return self._current.run()

    def apply(self, result: Any, now_ms: int) -> None:
        self._take_current().apply(result, now_ms)
        self._go_on()

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._take_current().failed(error, now_ms)
        self._go_on()

    def _take_current(self) -> Work:
        work, self._current = self._current, None
        assert work is not None
        return work
