"""RemoteTask: work on remote segments in steps. The broker's loop runs its steps and never waits for a store.

A task is a generator. It changes the broker's objects between its steps, and yields

    Beside(work)     a function that may block, such as a copy. It runs on another thread. If it has not returned after
                     its time, the task continues with an error. What the function leaves behind later is undone.
    Publish(record)  a record for `__remote_log_metadata`. The task resumes when the broker has read it back.

`yield` returns the result and the time, or raises the step's error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from tailrace.tiers.remote_segment import RemoteSegmentId
from tailrace.tiers.stores.remote_store import RemoteStorageError

T = TypeVar("T")


CALL_MS: Final = 75_000  # a store ends its own requests before


class StoreTimeout(RemoteStorageError):
    """A store that has not returned in time."""


class Beside(NamedTuple):
    work: Callable[[], Any]
    timeout_ms: int = CALL_MS
    undo: Callable[[], Any] | None = None  # undoes work that ends after its time


class Publish(NamedTuple):
    segment_id: RemoteSegmentId
    record: bytes


RemoteSteps: TypeAlias = Generator[Beside | Publish, tuple[Any, int], T]
Then: TypeAlias = Callable[[BaseException | None, int], None]


class Work(Protocol):
    """A chore: `run` on any thread, then `apply` or `failed` on the loop."""

    has_ended: bool

    def run(self) -> Any: ...
    def apply(self, result: Any, now_ms: int) -> None: ...
    def failed(self, error: BaseException, now_ms: int) -> None: ...

    def is_late(self, now_ms: int) -> bool:
        """Return True if `run` began long ago and has not returned."""

    def expire(self, now_ms: int) -> None:
        """End the chore with an error. What `run` returns later is ignored."""


class _Result(NamedTuple):
    value: Any
    error: BaseException | None
    now_ms: int


class RemoteTask(Generic[T]):
    """One run of a task."""

    def __init__(
        self,
        steps: RemoteSteps[T],
        submit: Callable[[Work], None],
        publish: Callable[[Publish, Then, int], None],
        ended: Callable[[T | None, BaseException | None, int], None],
    ) -> None:
        """`submit` runs work on another thread. `publish(step, then, now_ms)` appends a record and calls
        `then(error, now_ms)` when it has been read. `ended(result, error, now_ms)` is called once."""
        self._steps = steps
        self._submit = submit
        self._publish = publish
        self._ended = ended
        self._result: _Result | None = None  # of a step that ended at once
        self._is_running = False
        self._has_begun = False

    def start(self, now_ms: int) -> None:
        self._resume(_Result(None, None, now_ms))

    def _resume(self, result: _Result) -> None:
        """Run the task up to its next wait. A step that ends at once is continued by the loop below, not by a call
        within a call."""
        self._result = result
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._result is not None:
                result, self._result = self._result, None
                self._take_step(result)
        finally:
            self._is_running = False

    def _take_step(self, result: _Result) -> None:
        try:
            if result.error is not None:
                step = self._steps.throw(result.error)
            elif not self._has_begun:
                self._has_begun = True
                step = next(self._steps)
            else:
                step = self._steps.send((result.value, result.now_ms))
        except StopIteration as stop:
            self._ended(stop.value, None, result.now_ms)
            return
        except Exception as error:
            self._ended(None, error, result.now_ms)
            return
        if isinstance(step, Beside):
            self._submit(_StepWork(step, self._resume, self._submit))
        else:
            self._publish(step, lambda error, now_ms: self._resume(_Result(None, error, now_ms)), result.now_ms)


class _StepWork:
    """A step on a worker thread, as a chore."""

    def __init__(self, step: Beside, resume: Callable[[_Result], None], submit: Callable[[Work], None]) -> None:
        self._step = step
        self._resume = resume
        self._submit = submit
        self._is_running = False
        self._deadline_ms: int | None = None  # known when the loop has seen that the step runs
        self.has_ended = False

    def run(self) -> Any:
        self._is_running = True
        return self._step.work()

    def apply(self, result: Any, now_ms: int) -> None:
        self._end(_Result(result, None, now_ms))

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._end(_Result(None, error, now_ms))

    def _end(self, result: _Result) -> None:
        if not self.has_ended:
            self.has_ended = True
            self._resume(result)
        elif self._step.undo is not None:
            self._submit(_StepWork(Beside(self._step.undo), _ignore, self._submit))

    def is_late(self, now_ms: int) -> bool:
        if not self._is_running:
            return False
        if self._deadline_ms is None:
            self._deadline_ms = now_ms + self._step.timeout_ms
        return now_ms >= self._deadline_ms

    def expire(self, now_ms: int) -> None:
        self.has_ended = True
        error = StoreTimeout(f"the remote store has not returned after {self._step.timeout_ms:,} ms")
        self._resume(_Result(None, error, now_ms))


def _ignore(result: _Result) -> None:
    """Ignore the end of work for which no task waits."""
