"""Frames: an input of the request target, taken apart and put together."""

from __future__ import annotations

import struct
from collections.abc import Iterable

FRAME_BYTES_MAX = 1_000_000


def split_frames(data: bytes) -> list[bytes]:
    """Return the frames of an input. A rest whose size is wrong is one more frame."""
    frames = []
    position = 0
    while len(data) - position >= 4:
        (size,) = struct.unpack_from(">i", data, position)
        if not 0 <= size <= len(data) - position - 4:
            frames.append(data[position + 4 :])
            break
        frames.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    return frames


def join_frames(frames: Iterable[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
