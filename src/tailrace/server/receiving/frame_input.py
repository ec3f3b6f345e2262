"""FrameInput: the bytes that one connection sends, cut into frames.

A frame is an int32 size and that many bytes. Received bytes go to the loop's arena; a frame is a view of it. When the
arena starts again, the connection keeps its remaining bytes: frames that had no turn yet, and the start of the next
one, at most 64 KB. A small incomplete frame is continued in place, or put in front of the next read. A large frame gets
its own buffer, and the rest is received straight into it. After a large frame only the head of the next one is read to
the arena, so that in a stream of large frames almost nothing is copied.

A size up to `socket.request.max.bytes` is allowed. With a larger or negative size the connection is closed.
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
)  # so there is always room behind the bytes put in front


class FrameInput:
    __slots__ = ("_buffers", "_data", "_end", "_filled", "_is_bulk", "_own", "_start", "began", "frames", "limit")

    def __init__(self, limit: int, buffers: FrameBuffers) -> None:
        self.limit = limit  # of a frame
        self.frames = 0  # returned by `next_frame`
        self.began = 0  # the number of its latest large frame, among all connections
        self._buffers = buffers
        self._data = _NOTHING  # a view of the arena, or kept bytes; those from _start to _end are not cut yet
        self._start = 0
        self._end = 0
        self._own: memoryview | None = None  # a large frame that is being received, _filled bytes of it so far
        self._filled = 0
        self._is_bulk = False  # the last frame was large, so only the head of the next one is read first

    def allow(self, limit: int) -> None:
        """Change the largest size of a frame."""
        self.limit = limit

    def __len__(self) -> int:
        """Return the number of received bytes that are not in a returned frame."""
        return self._end - self._start + self._filled

    @property
    def large_size(self) -> int:
        """The size of the large frame that has begun, or 0."""
        return 0 if self._own is None else len(self._own)

    @property
    def lent_size(self) -> int:
        """The size of the large frame that has begun, if its buffer is not from the pool; else 0."""
        return 0 if self._own is None or self._buffers.is_pooled(self._own) else len(self._own)

    @property
    def may_have_frame(self) -> bool:
        """True if `next_frame` may return a frame."""
        return self._end > self._start or self._own is not None

    def receive(self, recv_into: Callable[[memoryview], int], arena: ReceiveArena) -> int:
        """Read; return the number of bytes, 0 at the end of the stream. Call it only after `next_frame` returned
        None."""
        if self._own is not None:
            return self._receive_own(recv_into)
        position = arena.position
        view = arena.view
        held = self._end - self._start
        if held and (self._data is not view or self._end != position):
            view[position : position + held] = self._data[self._start : self._end]
            self._data, self._start, self._end = view, position, position + held
            position = arena.move_to(self._end)
        elif not held:
            self._data, self._start, self._end = view, position, position
        if not self._is_bulk:
            count = recv_into(view[position : self._start + READ_BYTES_MAX])
            self._end = arena.move_to(position + count)
            return count
        count = recv_into(view[position : position + BULK_READ_BYTES])
        self._end = arena.move_to(position + count)
        self._is_bulk = self._begin_large()
        if self._is_bulk:
            with suppress(BlockingIOError):
                count += self._receive_own(recv_into)
        return count

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size, or None. Raise InvalidFrame for an invalid size."""
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
                raise InvalidFrame(
                    "a TLS handshake at a listener without TLS; the client's security.protocol does not match"
                )
            raise InvalidFrame(f"a frame of {size} bytes; allowed are 0 to {self.limit} (socket.request.max.bytes)")
        if held >= size + _PREFIX:
            start += _PREFIX
            self._start = stop = start + size
            self.frames += 1
            return self._data[start:stop]
        self._is_bulk = self._begin_large()
        return None

    def _begin_large(self) -> bool:
        """Give a large frame that has begun its own buffer. Return True if it has one."""
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
        """Copy the remaining bytes out of the arena, which is about to start again."""
        if self._data is not arena.view:
            return
        self._data = memoryview(bytearray(self._data[self._start : self._end])) if self._end > self._start else _NOTHING
        self._end -= self._start
        self._start = 0
