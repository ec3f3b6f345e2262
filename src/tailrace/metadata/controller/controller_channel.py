"""ControllerChannel: sends requests to the active controller.

A request is sent when the leader of the quorum is known. After NOT_CONTROLLER, or without a response, it is sent again
to the leader that is known by then, until its timeout. So every request here must be safe to repeat, as are all
requests that Kafka's brokers send to their controller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tailrace.metadata.quorum.quorum_observer import ControllerAddress
from tailrace.model.errors import ErrorCode
from tailrace.protocol.message import Message
from tailrace.waiting.outbox import Answered, Failed, Failure, Outbox, Peer

RETRY_MS: Final = 100


class _Request:
    __slots__ = ("answered", "body", "channel", "deadline_ms", "failed")

    def __init__(self, channel: str, body: Message, answered: Answered, failed: Failed, deadline_ms: int) -> None:
        self.channel = channel
        self.body = body
        self.answered = answered
        self.failed = failed
        self.deadline_ms = deadline_ms


class ControllerChannel:
    def __init__(
        self, outbox: Outbox, leader: Callable[[], ControllerAddress | None], *, request_timeout_ms: int = 30_000
    ) -> None:
        self._outbox = outbox
        self._leader = leader
        self._request_timeout_ms = request_timeout_ms
        self._waiting: deque[_Request] = deque()  # requests that wait for a leader or for the next attempt
        self._retry_ms: int | None = None

    def send(
        self, channel: str, body: Message, answered: Answered, failed: Failed, *, now_ms: int, timeout_ms: int = 60_000
    ) -> None:
        """Like `Outbox.send`, to the active controller. Each channel has its own connection."""
        self._attempt(_Request(channel, body, answered, failed, now_ms + timeout_ms), now_ms)

    def leader_changed(self, now_ms: int) -> None:
        """Send the waiting requests, now that a leader is known."""
        self._retry_ms = None
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._attempt(request, now_ms)

    def tick(self, now_ms: int) -> None:
        if self._retry_ms is not None and now_ms >= self._retry_ms:
            self.leader_changed(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._retry_ms

    def _attempt(self, request: _Request, now_ms: int) -> None:
        if now_ms >= request.deadline_ms:
            request.failed(Failure.TIMED_OUT, now_ms)
            return
        leader = self._leader()
        if leader is None:
            self._wait(request, now_ms)
            return

        def answered(response: Any, now_ms: int) -> None:
            if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
                self._wait(request, now_ms)
            else:
                request.answered(response, now_ms)

        def failed(failure: Failure, now_ms: int) -> None:
            if failure in (Failure.UNSUPPORTED, Failure.UNREADABLE):
                request.failed(failure, now_ms)
            else:
                self._wait(request, now_ms)

        timeout_ms = min(self._request_timeout_ms, request.deadline_ms - now_ms)
        peer = Peer(request.channel, *leader, is_controller=True)
        self._outbox.send(peer, request.body, answered, failed, timeout_ms=timeout_ms)

    def _wait(self, request: _Request, now_ms: int) -> None:
        self._waiting.append(request)
        if self._retry_ms is None:
            self._retry_ms = now_ms + RETRY_MS
