"""The two kinds of streams to another node, which never block: plain, and with TLS.

shake_hands()              BlockingIOError until requests can be sent
send(data), recv_into()    like a socket's; `unsent` is the number of bytes that `flush` still has to send
may_hold_more              True if a read that did not fill its buffer may have left bytes that epoll does not report
"""

from __future__ import annotations

from socket import socket
from typing import Protocol

from tailrace.client.security.security import Security


class PeerStream(Protocol):
    @property
    def is_open(self) -> bool: ...

    @property
    def unsent(self) -> int: ...

    @property
    def may_hold_more(self) -> bool: ...

    def shake_hands(self) -> None: ...

    def flush(self) -> int: ...

    def send(self, data: memoryview) -> int: ...

    def recv_into(self, view: memoryview) -> int: ...

    def close(self) -> None: ...


class PlainStream:
    is_open = True
    unsent = 0
    may_hold_more = False

    def __init__(self, made: socket) -> None:
        self.send = made.send
        self.recv_into = made.recv_into
        self.close = made.close

    def shake_hands(self) -> None:
        """Do nothing: plain streams have no handshake."""

    def flush(self) -> int:
        return 0


def open_stream(made: socket, host: str, security: Security) -> PeerStream:
    """Return a stream over a socket that may not be connected yet."""
    if security.tls is None:
        return PlainStream(made)
    from tailrace.server.peers.encrypted_stream import EncryptedStream  # and OpenSSL, which not every broker needs

    return EncryptedStream(made, security.tls, host)
