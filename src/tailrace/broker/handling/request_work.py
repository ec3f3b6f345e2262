"""RequestWork: checks and searches of many records, done by chores on worker threads.

A part of a request is a function that checks a produced batch, or searches a batch for a timestamp. It reads only data
that the broker does not change meanwhile. Parts run on the threads for prompt chores, PARTS_MAX at a time. Each request
has at most one running part, and requests take turns after each part. So a request with many large batches does not
delay the others for long. When all parts of a request are done, its handler resumes on the loop.

Meanwhile the connection waits as for any pending reply, so the requests of a connection stay in order. If the client
disconnects, its parts that have not begun are dropped. If the broker stops, waiting parts are not begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from tailrace.broker.handling.refusals import Refusals
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.waiting.chore import Chore

PARTS_MAX: Final = 2

Part = Callable[[], Any]
Done = Callable[[list[Any], int], None]  # (results in the order of the parts, now_ms)


class _Job:
    """A request and its remaining parts."""

    __slots__ = ("done", "is_dropped", "parts", "request", "results")

    def __init__(self, request: Request, parts: Sequence[Part], done: Done) -> None:
        self.request = request
        self.parts = deque(parts)
        self.done = done
        self.results: list[Any] = []
        self.is_dropped = False


class _PartChore:
    """One part, as a chore."""

    is_prompt = True

    def __init__(self, work: RequestWork, job: _Job, part: Part) -> None:
        self._work = work
        self._job = job
        self.run = part

    def apply(self, result: Any, now_ms: int) -> None:
        self._job.results.append(result)
        self._work.part_ended(self._job, None, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._work.part_ended(self._job, error, now_ms)


class RequestWork:
    def __init__(self, replies: Replies, refusals: Refusals, submit: Callable[[Chore], None]) -> None:
        self._replies = replies
        self._refusals = refusals
        self._submit = submit
        self._waiting: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._is_starting = False

    def start(self, request: Request, parts: Sequence[Part], done: Done) -> None:
        """Do the parts of a request by chores, then call `done` on the loop.

        The request's memory is not reused until then.
        """
        self._waiting.append(_Job(request, parts, done))
        self._start_parts()

    def count(self, api_key: int) -> int:
        """Return how many requests of an API have parts that run or wait."""
        return sum(job.request.api_key == api_key for job in (*self._waiting, *self._running))

    def connection_closed(self, connection_id: int) -> None:
        """Drop the parts of a client that has disconnected, except running ones."""
        for job in (*self._waiting, *self._running):
            job.is_dropped |= job.request.context.connection_id == connection_id
        self._waiting = deque(job for job in self._waiting if not job.is_dropped)

    def _start_parts(self) -> None:
        if self._is_starting:
            return  # `submit` has run the chore at once; the outer call's `while` loop continues
        self._is_starting = True
        try:
            while self._waiting and len(self._running) < PARTS_MAX:
                job = self._waiting.popleft()
                self._running.add(job)
                self._submit(_PartChore(self, job, job.parts.popleft()))
        finally:
            self._is_starting = False

    def part_ended(self, job: _Job, error: BaseException | None, now_ms: int) -> None:
        """Start the next part, or resume the request if this was the last part. Called on the loop."""
        self._running.discard(job)
        has_more = error is None and bool(job.parts)
        if has_more and not job.is_dropped:
            self._waiting.append(job)
        self._start_parts()
        if has_more:
            return
        request = job.request
        self._replies.begin(request)
        try:
            if error is not None:
                raise (
                    error
                    if isinstance(error, Exception)
                    else RuntimeError(f"a part of a request has failed: {error!r}")
                )
            job.done(job.results, now_ms)
        except Exception as unexpected:
            self._refusals.failed(request, unexpected, now_ms)
        else:
            self._replies.finish(request, None, now_ms)
