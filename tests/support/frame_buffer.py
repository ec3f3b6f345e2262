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
        self._needed = _LENGTH.size  # number of bytes needed from there before the next step

    def __len__(self) -> int:
        """Return the number of received bytes that are not yet part of a returned frame."""
        return len(self._buffer) - self._position

    def receive(self, data: Buffer) -> None:
        """Add received bytes."""
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the content of the next frame, or None until more bytes arrive. Raise InvalidFrame, from then on
        always, if the length is invalid.
        """
        if len(self._buffer) - self._position < self._needed:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._position)
        if not 0 <= length <= self._limit:
            raise InvalidFrame(f"a frame of {length} bytes; allowed are 0 to {self._limit}")
        start = self._position + _LENGTH.size
        stop = start + length
        if stop > len(self._buffer):
            self._needed = _LENGTH.size + length
            return None
        self._position = stop
        self._needed = _LENGTH.size
        with memoryview(self._buffer) as view:
            return bytes(view[start:stop])
