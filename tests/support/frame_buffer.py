"""FrameBuffer: cuts arbitrary chunks of received bytes into length-prefixed frames."""

from __future__ import annotations

from struct import Struct
from typing import Final

from tailrace.protocol.framing import InvalidFrame
from tailrace.protocol.primitives import Buffer

REQUEST_BYTES_MAX: Final = 104_857_600
_LENGTH: Final = Struct(">i")


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
