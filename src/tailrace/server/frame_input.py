"""FrameInput: the bytes that one connection sends, cut into frames.

A frame is an int32 size and as many bytes. What is read goes to the loop's arena; a frame is a view of it. What is left
over when the arena is needed again is kept by the connection: frames whose turn has not come, and the start of the next
one, 64 KB at most. A small frame that has only begun is put in front of what is read next. A larger one gets its own
buffer, and the rest is received straight into it: no byte is copied more than twice, and most of them not at all.

The size is believed up to `socket.request.max.bytes`. Beyond it, or below zero, the connection has to go.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from tailrace.protocol.framing import InvalidFrame
from tailrace.server.receive_buffers import READ_BYTES_MAX, FrameBuffers, ReceiveArena

SMALL_FRAME_BYTES: Final = 32_768
_SIZE: Final = Struct(">i")
_PREFIX: Final = _SIZE.size
_NOTHING: Final = memoryview(b"")
assert SMALL_FRAME_BYTES + _PREFIX < READ_BYTES_MAX  # so there is always room behind what is put in front


class FrameInput:
    __slots__ = ("_buffers", "_data", "_end", "_filled", "_limit", "_own", "_start")

    def __init__(self, limit: int, buffers: FrameBuffers) -> None:
        self._limit = limit
        self._buffers = buffers
        self._data = _NOTHING  # the arena's view or what was kept; bytes from _start to _end are still to be cut
        self._start = 0
        self._end = 0
        self._own: memoryview | None = None  # a large frame that is being received, _filled bytes of it so far
        self._filled = 0

    def __len__(self) -> int:
        """The bytes held that no frame has been made of."""
        return self._end - self._start + self._filled

    def receive(self, recv_into: Callable[[memoryview], int], arena: ReceiveArena) -> int:
        """Read once; says how many bytes came, 0 at the end of the stream. Only for when `next_frame` had nothing."""
        if self._own is not None:
            count = recv_into(self._own[self._filled :])
            self._filled += count
            return count
        position = arena.position
        view = arena.view
        kept = self._end - self._start
        if kept:
            view[position : position + kept] = self._data[self._start : self._end]
        count = recv_into(view[position + kept : position + READ_BYTES_MAX])
        self._data = view
        self._start = position
        self._end = arena.position = position + kept + count
        return count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or None; InvalidFrame if its size cannot be right."""
        own = self._own
        if own is not None:
            if self._filled < len(own):
                return None
            self._own = None
            self._filled = 0
            return own
        start = self._start
        held = self._end - start
        if held < _PREFIX:
            return None
        (size,) = _SIZE.unpack_from(self._data, start)
        if not 0 <= size <= self._limit:
            raise InvalidFrame(f"a frame of {size} bytes, where 0 to {self._limit} are allowed")
        start += _PREFIX
        if held >= size + _PREFIX:
            self._start = stop = start + size
            return self._data[start:stop]
        if size > SMALL_FRAME_BYTES:
            self._own = own = self._buffers.take(size)
            self._filled = held - _PREFIX
            own[: self._filled] = self._data[start : self._end]
            self._start = self._end
        return None

    def keep(self) -> None:
        """The arena is about to be used again: keep what is left."""
        if self._end > self._start:
            self._data = memoryview(bytearray(self._data[self._start : self._end]))
            self._end -= self._start
            self._start = 0
        else:
            self._data = _NOTHING
            self._start = self._end = 0
