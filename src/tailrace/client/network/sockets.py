"""Sockets of client connections: the interface, plain TCP, and the choice between plain and TLS."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from tailrace.client.network.address import Address
from tailrace.client.network.retry_budget import Clock
from tailrace.client.security.security import Security
from tailrace.client.security.tls_socket import TlsSocket


class Socket(Protocol):
    """The part of a socket that a connection uses."""

    def sendall(self, data: Any, /) -> None: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def settimeout(self, seconds: float, /) -> None: ...

    def has_input(self) -> bool:
        """Return True if there are bytes to read, or the peer has closed the connection."""

    def close(self) -> None: ...


class PlainSocket:
    """A TCP connection without TLS."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sendall = self._socket.sendall
        self.recv_into: Callable[[memoryview], int] = self._socket.recv_into
        self.settimeout = self._socket.settimeout
        self.close = self._socket.close

    def has_input(self) -> bool:
        self._socket.setblocking(False)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True


OpenSocket = Callable[[Address, float], Socket]


def opener(security: Security) -> OpenSocket:
    """Return the function that connects with these settings."""
    return PlainSocket if security.tls is None else partial(TlsSocket, tls=security.tls)


def fill(view: memoryview, source: Socket, deadline_s: float, clock: Clock) -> None:
    """Receive until the view is full. Raise TimeoutError at the deadline, ConnectionResetError if the peer closes."""
    while len(view):
        remaining = deadline_s - clock.monotonic()
        if remaining <= 0:
            raise TimeoutError
        source.settimeout(remaining)
        count = source.recv_into(view)
        if count == 0:
            raise ConnectionResetError("the broker closed the connection")
        view = view[count:]
