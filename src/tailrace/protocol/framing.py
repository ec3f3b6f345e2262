"""Frames: every message on a connection is preceded by its length, an int32."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from struct import Struct
from typing import Final

from tailrace.protocol.errors import ProtocolError

_LENGTH: Final = Struct(">i")


class InvalidFrame(ProtocolError):
    """An impossible length. Nothing after it can be decoded, so the connection has to be closed."""


def frame_length(parts: Sequence[Sized]) -> bytes:
    """Return the length prefix that turns the parts into a frame."""
    return _LENGTH.pack(sum(map(len, parts)))
