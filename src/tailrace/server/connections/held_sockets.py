"""HeldSockets: connections of addresses that open too many, held for some time and then closed.

If such a connection were closed at once, its client would reconnect at once. Nothing is read from a held connection.
"""

from __future__ import annotations

import heapq
from itertools import count
from socket import socket
from typing import Final

HELD_MAX: Final = 256  # descriptors for held connections; beyond that, the oldest one is closed


class HeldSockets:
    def __init__(self, sockets_max: int = HELD_MAX) -> None:
        self._sockets_max = sockets_max
        self._heap: list[tuple[int, int, socket]] = []  # (closing time, order of arrival, socket)
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def hold(self, held: socket, until_ms: int) -> None:
        heapq.heappush(self._heap, (until_ms, next(self._numbers), held))
        if len(self._heap) > self._sockets_max:
            heapq.heappop(self._heap)[2].close()

    def next_deadline_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def close_due(self, now_ms: int) -> None:
        while self._heap and self._heap[0][0] <= now_ms:
            heapq.heappop(self._heap)[2].close()

    def close(self) -> None:
        for _, _, held in self._heap:
            held.close()
        self._heap.clear()
