"""Find the process that opened a TCP connection on loopback, with Linux's sock_diag and the processes' descriptors."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from typing import Final

_SOCK_DIAG: Final = 4  # protocol number in AF_NETLINK
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY_STATE: Final = 0xFFF
_NO_COOKIE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_INODE_AT: Final = _HEADER.size + 4 + 48 + 16  # after the state, the socket's identity and four numbers
_LOOPBACK: Final = socket.inet_aton("127.0.0.1")


def owner_of(port: int, far_port: int, pids: Iterable[int]) -> int | None:
    """Return the process, one of `pids`, that owns the end at `port` of a connection to `far_port`."""
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
        return None  # the connection is already closed
    return int(struct.unpack_from("=I", answer, _INODE_AT)[0])


def _has_socket(pid: int, inode: int) -> bool:
    wanted = f"socket:[{inode}]"
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False  # the process has just ended
    return any(_link(f"/proc/{pid}/fd/{name}") == wanted for name in names)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
