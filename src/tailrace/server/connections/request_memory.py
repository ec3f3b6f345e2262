"""RequestMemory: limits the memory of large requests that are received or handled: queued.max.request.bytes.

Every connection may have begun a request of socket.request.max.bytes, so the number of connections does not limit the
memory. Above the limit the oldest unfinished request is dropped, and its connection closed, because a normal request
arrives within moments. A quarter of the limit is kept for requests of ordinary size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tailrace.server.connections.connection import Connection
from tailrace.server.receiving.receive_buffers import POOLED_BYTES, FrameBuffers

_LOOKS: Final = 16  # the connections are checked after every sixteenth of the limit


class RequestMemory:
    def __init__(self, limit: int, buffers: FrameBuffers) -> None:
        self._limit = limit
        self._buffers = buffers
        self._looked_at = 0  # received bytes at the last check

    @property
    def is_due(self) -> bool:
        return self._buffers.received - self._looked_at >= self._limit // _LOOKS

    def take_excess(self, connections: Iterable[Connection]) -> list[Connection]:
        """Return the connections whose unfinished requests are to be dropped."""
        self._looked_at = self._buffers.received
        begun = [connection for connection in connections if connection.input.large_size]
        # The pages of an unfinished request are allocated as bytes arrive.
        unfinished = sum(len(connection.input) - connection.input.lent_size for connection in begun)
        used = self._buffers.lent_bytes + unfinished
        excess: list[Connection] = []
        if used <= self._limit - self._limit // 4:
            return excess
        begun.sort(key=lambda connection: connection.input.began)
        for connection in begun:
            is_ordinary = connection.input.large_size <= POOLED_BYTES
            if used > (self._limit if is_ordinary else self._limit - self._limit // 4):
                excess.append(connection)
                used -= len(connection.input)
        return excess
