"""RequestChores: decoding and encoding of large messages on worker threads, one chore at a time.

Only one chore decodes or encodes at any time, so large requests cannot occupy all worker threads or all memory.
Meanwhile the connection waits as it does for any pending reply.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tailrace.broker.storage.cleaning import Step, Work
from tailrace.protocol.message import Struct


class RequestChores:
    def __init__(self, submit: Callable[[Work], None]) -> None:
        self._submit = submit
        self.connections: set[int] = set()  # connections whose request has paused or was decoded by a chore
        self._decoded: dict[int, list[Struct]] = {}  # by connection: the structs of a request that a chore has decoded
        self._steps: deque[tuple[int, Step]] = deque()  # with their connections
        self._is_running = False

    def add(self, connection_id: int, step: Step) -> None:
        """Run a step of a connection's request as a chore, after the steps that were added before."""
        self._steps.append((connection_id, step))
        if not self._is_running:
            self._next()

    def _next(self) -> None:
        if not self._steps:
            self._is_running = False
            return
        self._is_running = True
        _, step = self._steps.popleft()

        def apply(result: Any, now_ms: int) -> None:
            self._next()
            step.apply(result, now_ms)

        def failed(error: BaseException, now_ms: int) -> None:
            self._next()
            step.failed(error, now_ms)

        self._submit(Step(step.run, apply, failed, is_prompt=True))

    def keep_decoded(self, connection_id: int, structs: list[Struct]) -> None:
        """Keep the structs of a decoded request until its response is encoded."""
        self._decoded[connection_id] = structs

    def take_decoded(self, connection_id: int) -> list[Struct]:
        return self._decoded.pop(connection_id, [])

    def ended(self, connection_id: int) -> None:
        """Note that a connection's request has its response, or that the connection is closed."""
        self.connections.discard(connection_id)
        self._decoded.pop(connection_id, None)

    def connection_closed(self, connection_id: int) -> None:
        """Drop the steps of a connection that have not begun."""
        self.ended(connection_id)
        self._steps = deque(one for one in self._steps if one[0] != connection_id)
