"""Who has opened a TCP connection on loopback: its process, as Linux tells it (sock_diag, and descriptors)."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from typing import Final

_SOCK_DIAG: Final = 4  # a protocol of AF_NETLINK
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY_STATE: Final = 0xFFF
_NO_COOKIE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_INODE_AT: Final = _HEADER.size + 4 + 48 + 16  # behind the state, the socket's identity, and four numbers
_LOOPBACK: Final = socket.inet_aton("127.0.0.1")


def owner_of(port: int, far_port: int, pids: Iterable[int]) -> int | None:
    """Which of some processes has the end at `port` of a connection to `far_port`."""
    inode = _inode_of(port, far_port)
    if inode is None:
        return None
    return next((pid for pid in pids if _has_socket(pid, inode)), None)


def _inode_of(port: int, far_port: int) -> int | None:
    identity = struct.pack("!HH4s12x4s12x", port, far_port, _LOOPBACK, _LOOPBACK)
    identity += struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
    request = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + identity
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST, 1, 0) + request)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None  # it is closed already
    return int(struct.unpack_from("=I", answer, _INODE_AT)[0])


def _has_socket(pid: int, inode: int) -> bool:
    wanted = f"socket:[{inode}]"
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False  # it has just ended
    return any(_link(f"/proc/{pid}/fd/{name}") == wanted for name in names)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
