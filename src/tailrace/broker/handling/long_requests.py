"""LongRequests: handlers that would block the loop for too long run in turns.

A handler that may take long is a generator, and `now_ms = yield` marks where it can pause. It runs until the loop's
turn is over and resumes in the next turn. Several paused requests take turns. If a request has paused, a chore encodes
its response (`replies.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tailrace.broker.handling.refusals import Refusals
from tailrace.broker.handling.request_chores import RequestChores
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.model.steps import Steps


class _Paused:
    """A request whose handler has not ended."""

    __slots__ = ("is_started", "request", "steps")

    def __init__(self, request: Request, steps: Steps[Any]) -> None:
        self.request = request
        self.steps = steps
        self.is_started = False


class LongRequests:
    def __init__(
        self, replies: Replies, refusals: Refusals, chores: RequestChores, is_turn_over: Callable[[], bool]
    ) -> None:
        self._replies = replies
        self._refusals = refusals
        self._chores = chores
        self.is_turn_over = is_turn_over  # returns True if a handler should pause
        self._paused: deque[_Paused] = deque()

    def start(self, request: Request, steps: Steps[Any], now_ms: int) -> None:
        """Run a handler now, or in the next turn if this one is over."""
        paused = _Paused(request, steps)
        if self.is_turn_over():
            self._pause(paused)
        else:
            self._run(paused, now_ms)

    def tick(self, now_ms: int) -> None:
        """Resume paused requests until the turn is over."""
        for _ in range(len(self._paused)):
            if not self._paused or self.is_turn_over():
                return
            self._run(self._paused.popleft(), now_ms)

    def next_deadline_ms(self) -> int | None:
        return 0 if self._paused else None

    def _run(self, paused: _Paused, now_ms: int) -> None:
        request, steps = paused.request, paused.steps
        self._replies.begin(request)
        try:
            if not paused.is_started:
                paused.is_started = True
                next(steps)
            while not self.is_turn_over():
                steps.send(now_ms)
        except StopIteration as end:
            self._replies.finish(request, end.value, now_ms)
            return
        except Exception as error:
            self._refusals.failed(request, error, now_ms)
            return
        self._replies.handler_paused()
        self._pause(paused)

    def _pause(self, paused: _Paused) -> None:
        self._chores.connections.add(paused.request.context.connection_id)
        self._paused.append(paused)

    def connection_closed(self, connection_id: int) -> None:
        """Drop the paused request of a connection."""
        for paused in self._paused:
            if paused.request.context.connection_id == connection_id:
                paused.steps.close()
        self._paused = deque(one for one in self._paused if one.request.context.connection_id != connection_id)
