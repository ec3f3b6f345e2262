"""PendingAnswer: the answer to a request that waits for a coordinator; it is given once, now or later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker
    from tailrace.broker.request_context import Request


class PendingAnswer:
    __slots__ = ("_broker", "_request", "is_given")

    def __init__(self, broker: Broker, request: Request) -> None:
        self._broker = broker
        self._request = request.without_body()
        self.is_given = False

    def __call__(self, response: Any, now_ms: int) -> None:
        """The first answer counts: a coordinator may tell of a failure after it has answered."""
        if not self.is_given:
            self.is_given = True
            self._broker.answer(self._request, response, now_ms)
