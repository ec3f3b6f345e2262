"""RequestChores: decoding and encoding of large messages on worker threads, one chore at a time.

Only one chore decodes or encodes at any time, so large requests cannot occupy all worker threads or all memory.
Meanwhile the connection waits as it does for any pending reply.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tailrace.protocol.message import Struct
from tailrace.waiting.chore import Chore, FunctionChore


class RequestChores:
    def __init__(self, submit: Callable[[Chore], None]) -> None:
        self._submit = submit
        self.connections: set[int] = set()  # connections whose request has paused or was decoded by a chore
        self._decoded: dict[int, list[Struct]] = {}  # by connection: the structs of a request that a chore has decoded
        self._waiting: deque[tuple[int, FunctionChore]] = deque()  # with their connections
        self._is_running = False

    def add(self, connection_id: int, chore: FunctionChore) -> None:
        """Run a chore for a connection's request, after the chores that were added before."""
        self._waiting.append((connection_id, chore))
        if not self._is_running:
            self._next()

    def _next(self) -> None:
        if not self._waiting:
            self._is_running = False
            return
        self._is_running = True
        _, chore = self._waiting.popleft()

        def apply(result: Any, now_ms: int) -> None:
            self._next()
            chore.apply(result, now_ms)

        def failed(error: BaseException, now_ms: int) -> None:
            self._next()
            chore.failed(error, now_ms)

        self._submit(FunctionChore(chore.run, apply, failed, is_prompt=True))

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
        """Drop the chores of a connection that have not begun."""
        self.ended(connection_id)
        self._waiting = deque(one for one in self._waiting if one[0] != connection_id)
