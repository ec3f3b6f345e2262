"""PendingAnswer: the response to a request that waits for a coordinator. It is sent once, now or later."""

from __future__ import annotations

from typing import Any

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request


class PendingAnswer:
    __slots__ = ("_replies", "_request", "is_given")

    def __init__(self, replies: Replies, request: Request) -> None:
        self._replies = replies
        self._request = request.without_body()
        self.is_given = False

    def __call__(self, response: Any, now_ms: int) -> None:
        """Send the response unless one was sent already: a coordinator may report a failure after its answer."""
        if not self.is_given:
            self.is_given = True
            self._replies.answer(self._request, response, now_ms)
