"""FrameBuffer: length-prefixed frames out of arbitrary chunks.

A frame is an int32 length and as many bytes. The length is believed only up to a limit (`socket.request.max.bytes`,
104,857,600 by default), and memory is taken for bytes that have come, never for bytes that are announced: a peer that
announces the limit and sends nothing costs nothing. What is held is at most one unfinished frame and the last chunk,
if every frame is taken before more is received.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from struct import Struct
from typing import Final

from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.primitives import Buffer

REQUEST_BYTES_MAX: Final = 104_857_600
_LENGTH: Final = Struct(">i")


class InvalidFrame(ProtocolError):
    """A length that cannot be right; nothing after it makes sense, so the connection has to go."""


class FrameBuffer:
    __slots__ = ("_buffer", "_limit", "_needed", "_position")

    def __init__(self, limit: int = REQUEST_BYTES_MAX) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._position = 0  # where the next frame starts
        self._needed = _LENGTH.size  # how many bytes from there are needed before anything can be said

    def __len__(self) -> int:
        """The bytes received that no frame has been made of yet."""
        return len(self._buffer) - self._position

    def receive(self, data: Buffer) -> None:
        """Take bytes as they come."""
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The content of the next frame, or None until more is received; InvalidFrame, now and ever after, if its
        length cannot be right."""
        if len(self._buffer) - self._position < self._needed:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._position)
        if not 0 <= length <= self._limit:
            raise InvalidFrame(f"a frame of {length} bytes, where 0 to {self._limit} are allowed")
        start = self._position + _LENGTH.size
        stop = start + length
        if stop > len(self._buffer):
            self._needed = _LENGTH.size + length
            return None
        self._position = stop
        self._needed = _LENGTH.size
        with memoryview(self._buffer) as view:
            return bytes(view[start:stop])


def frame_length(parts: Sequence[Sized]) -> bytes:
    """What goes before parts to make them a frame."""
    return _LENGTH.pack(sum(map(len, parts)))
