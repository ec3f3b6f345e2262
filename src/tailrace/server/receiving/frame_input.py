"""FrameInput: the bytes that one connection sends, cut into frames.

A frame is an int32 size and as many bytes. What is read goes to the loop's arena; a frame is a view of it. What is left
over when the arena starts again is kept by the connection: frames whose turn has not come, and the start of the next
one, 64 KB at most. A small frame that has only begun is continued where it is, or put in front of what is read next. A
larger one gets its own buffer, and the rest is received straight into it; after a large frame only the head of the next
is read to the arena, so that of a stream of large frames next to nothing is copied.

The size is believed up to `socket.request.max.bytes`. Beyond it, or below zero, the connection has to go.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Final

from tailrace.protocol.framing import InvalidFrame
from tailrace.server.receiving.receive_buffers import READ_BYTES_MAX, FrameBuffers, ReceiveArena

SMALL_FRAME_BYTES: Final = 32_768
BULK_READ_BYTES: Final = 4_096
_SIZE: Final = Struct(">i")
_PREFIX: Final = _SIZE.size
_TLS_HANDSHAKE: Final = 0x1603  # the first two bytes of a ClientHello
_NOTHING: Final = memoryview(b"")
assert (
    SMALL_FRAME_BYTES + _PREFIX + BULK_READ_BYTES <= READ_BYTES_MAX
)  # so there is always room behind what is put in front


class FrameInput:
    __slots__ = ("_buffers", "_data", "_end", "_filled", "_is_bulk", "_own", "_start", "began", "frames", "limit")

    def __init__(self, limit: int, buffers: FrameBuffers) -> None:
        self.limit = limit  # of a frame
        self.frames = 0  # handed out
        self.began = 0  # which of all large frames the last one was
        self._buffers = buffers
        self._data = _NOTHING  # the arena's view or what was kept; bytes from _start to _end are still to be cut
        self._start = 0
        self._end = 0
        self._own: memoryview | None = None  # a large frame that is being received, _filled bytes of it so far
        self._filled = 0
        self._is_bulk = False  # the last frame was a large one: look at the head of the next before reading more

    def __len__(self) -> int:
        """The bytes held that no frame has been made of."""
        return self._end - self._start + self._filled

    @property
    def large_size(self) -> int:
        """The size of the large frame that has begun, or 0."""
        return 0 if self._own is None else len(self._own)

    @property
    def lent_size(self) -> int:
        """As `large_size`, if the frame has memory of its own and not of the pool."""
        return 0 if self._own is None or self._buffers.is_pooled(self._own) else len(self._own)

    @property
    def may_have_frame(self) -> bool:
        """Whether it is worth asking for the next one."""
        return self._end > self._start or self._own is not None

    def receive(self, recv_into: Callable[[memoryview], int], arena: ReceiveArena) -> int:
        """Read; says how many bytes came, 0 at the end of the stream. Only for when `next_frame` had nothing."""
        if self._own is not None:
            return self._receive_own(recv_into)
        position = arena.position
        view = arena.view
        held = self._end - self._start
        if held and (self._data is not view or self._end != position):
            view[position : position + held] = self._data[self._start : self._end]
            self._data, self._start, self._end = view, position, position + held
            arena.position = position = self._end
        elif not held:
            self._data, self._start, self._end = view, position, position
        if not self._is_bulk:
            count = recv_into(view[position : self._start + READ_BYTES_MAX])
            self._end = arena.position = position + count
            return count
        count = recv_into(view[position : position + BULK_READ_BYTES])
        self._end = arena.position = position + count
        self._is_bulk = self._begin_large()
        if self._is_bulk:
            with suppress(BlockingIOError):
                count += self._receive_own(recv_into)
        return count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or None; InvalidFrame if its size cannot be right."""
        own = self._own
        if own is not None:
            if self._filled < len(own):
                return None
            self._own = None
            self._filled = 0
            self.frames += 1
            return own
        start = self._start
        held = self._end - start
        if held < _PREFIX:
            return None
        (size,) = _SIZE.unpack_from(self._data, start)
        if not 0 <= size <= self.limit:
            if size >> 16 == _TLS_HANDSHAKE:
                raise InvalidFrame("a TLS handshake, where the listener speaks Kafka's protocol without TLS")
            raise InvalidFrame(f"a frame of {size} bytes, where 0 to {self.limit} are allowed")
        if held >= size + _PREFIX:
            start += _PREFIX
            self._start = stop = start + size
            self.frames += 1
            return self._data[start:stop]
        self._is_bulk = self._begin_large()
        return None

    def _begin_large(self) -> bool:
        """Give the frame that has begun a buffer of its own, if it is a large one; says whether it has one."""
        held = self._end - self._start - _PREFIX
        if held < 0:
            return False
        (size,) = _SIZE.unpack_from(self._data, self._start)
        if not max(SMALL_FRAME_BYTES, held) < size <= self.limit:
            return False
        self._own = own = self._buffers.take(size)
        self.began = self._buffers.taken
        own[:held] = self._data[self._start + _PREFIX : self._end]
        self._filled = held
        self._start = self._end
        return True

    def _receive_own(self, recv_into: Callable[[memoryview], int]) -> int:
        assert self._own is not None
        count = recv_into(self._own[self._filled :])
        self._filled += count
        self._buffers.note_received(count)
        return count

    def keep(self, arena: ReceiveArena) -> None:
        """The arena is about to start again: take along what is left in it."""
        if self._data is not arena.view:
            return
        self._data = memoryview(bytearray(self._data[self._start : self._end])) if self._end > self._start else _NOTHING
        self._end -= self._start
        self._start = 0
