"""SlowRequests: finds requests that arrive so slowly that they only occupy a connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.server.connections.connection import Connection

PROGRESS_BYTES: Final = 65_536


class _Progress(NamedTuple):
    frames: int  # requests before it
    size: int
    since_ms: int


class SlowRequests:
    """A request is too slow unless it grows by 64 KB, or is complete, within connections.max.idle.ms."""

    def __init__(self, patience_ms: int) -> None:
        self._patience_ms = patience_ms
        self._begun: dict[int, _Progress] = {}

    def take(self, connections: Iterable[Connection], now_ms: int) -> set[int]:
        """Check all connections; return the ids of those whose request is too slow."""
        before, self._begun = self._begun, {}
        slow = set()
        for connection in connections:
            size = len(connection.input)
            if not size:
                continue
            known = before.get(connection.id)
            frames = connection.input.frames
            if known is None or known.frames != frames or size >= known.size + PROGRESS_BYTES:
                known = _Progress(frames, size, now_ms)
            elif now_ms - known.since_ms >= self._patience_ms:
                slow.add(connection.id)
            self._begun[connection.id] = known
        return slow
