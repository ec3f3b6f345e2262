"""Frames on a socket, for tests that speak to a broker byte by byte."""

from __future__ import annotations

import socket
import struct
from typing import Any

CLOSED = "closed"


def read_frame(stream: socket.socket) -> Any:
    """Return the next frame without its length, or CLOSED."""
    data = b""
    try:
        while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
            piece = stream.recv(65_536)
            if not piece:
                return CLOSED
            data += piece
    except ConnectionError:
        return CLOSED
    return data[4:]


def ask_frame(stream: socket.socket, frame: bytes) -> Any:
    """Send a frame and return the next one, or CLOSED."""
    try:
        stream.sendall(struct.pack(">i", len(frame)) + frame)
    except OSError:
        return CLOSED
    return read_frame(stream)
