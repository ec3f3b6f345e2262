"""ReceiveArena and FrameBuffers: the memory that requests are received into.

Small requests of all connections go through one arena, which is filled from front to back and then again from the
front. Large ones get their own buffers, out of a few that are reused. The broker gives neither back: a view of a buffer
holds a reference to it, so a buffer without views is free. If a view is kept, its bytes stay unchanged, and the server
uses other memory instead.

A buffer for a large request is an anonymous mapping, whose pages are allocated as bytes arrive. So a peer that
announces a hundred megabytes and sends nothing uses no memory.
"""

from __future__ import annotations

import mmap
from sys import getrefcount
from typing import Final
from weakref import finalize

ARENA_BYTES: Final = 262_144
READ_BYTES_MAX: Final = 65_536  # per read of a connection, and so the most that it can leave in the arena
FULL_POSITION: Final = ARENA_BYTES - READ_BYTES_MAX
POOLED_BYTES: Final = 1_114_112  # a batch of max.message.bytes (by default just above 1 MB), with room for headers
POOLED_COUNT: Final = 8


def _references(buffers: list[bytearray] | list[mmap.mmap], index: int) -> int:
    return getrefcount(buffers[index])


_ALONE: Final = _references([bytearray()], 0)  # the number of references to a buffer that only its list has


class ReceiveArena:
    """One buffer for reads. `position` is where the next read goes; after `FULL_POSITION` there is no room."""

    __slots__ = ("_buffers", "position", "replaced", "view")

    def __init__(self) -> None:
        self._buffers = [bytearray(ARENA_BYTES)]
        self.view = memoryview(self._buffers[0])
        self.position = 0
        self.replaced = 0  # how often it was replaced because a view was kept

    def move_to(self, position: int) -> int:
        """Set the position of the next read; return it."""
        self.position = position
        return position

    def recycle(self) -> None:
        """Start again at the front. If a view was kept, `view` is new memory, and the old slices stay unchanged."""
        self.view.release()
        if _references(self._buffers, 0) > _ALONE:
            self._buffers[0] = bytearray(ARENA_BYTES)
            self.replaced += 1
        self.view = memoryview(self._buffers[0])
        self.position = 0


class FrameBuffers:
    """Buffers for large requests. `lent_bytes` are in use outside of the pool; `received` counts all bytes."""

    __slots__ = ("_pool", "lent_bytes", "received", "taken")

    def __init__(self) -> None:
        self._pool: list[mmap.mmap] = []
        self.lent_bytes = 0
        self.received = 0
        self.taken = 0  # number of requests that got a buffer

    def note_received(self, size: int) -> None:
        self.received += size

    def _lend(self, size: int) -> mmap.mmap:
        """Make a buffer that is freed with its last view."""
        buffer = mmap.mmap(-1, size)
        self.lent_bytes += size
        finalize(buffer, self._returned, size)
        return buffer

    def _returned(self, size: int) -> None:
        self.lent_bytes -= size

    def is_pooled(self, view: memoryview) -> bool:
        return any(view.obj is buffer for buffer in self._pool)

    def take(self, size: int) -> memoryview:
        """Return `size` writable bytes with any content."""
        self.taken += 1
        if size > POOLED_BYTES:
            return memoryview(self._lend(size))
        for index in range(len(self._pool)):
            if _references(self._pool, index) <= _ALONE:
                return memoryview(self._pool[index])[:size]
        if len(self._pool) < POOLED_COUNT:
            buffer = mmap.mmap(-1, POOLED_BYTES)
            self._pool.append(buffer)
            return memoryview(buffer)[:size]
        return memoryview(self._lend(size))
