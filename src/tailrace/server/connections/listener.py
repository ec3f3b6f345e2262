"""Listener: one endpoint that clients connect to.

It is bound first, so that its port is known, and listens when the broker is ready. In between clients are refused
instead of waiting. A parent process may have bound the socket (`ServerSettings.inherited`). An empty host means every
interface, of both IP versions if the system can. A name is resolved, IPv4 before IPv6.
"""

from __future__ import annotations

import errno
import socket
from typing import NamedTuple

from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.settings import SYSTEM_DEFAULT, ServerSettings

_MAPPED = "::ffff:"  # the prefix of an IPv4 client at a socket of both IP versions


class AcceptedSocket(NamedTuple):
    socket: socket.socket
    host: str
    port: int


class Listener:
    def __init__(self, endpoint: Endpoint, settings: ServerSettings) -> None:
        self._settings = settings
        descriptor = settings.inherited.get(endpoint.name)
        self._socket = bind(endpoint, settings.receive_buffer_bytes) if descriptor is None else _inherit(descriptor)
        self.endpoint = endpoint._replace(port=self._socket.getsockname()[1])
        self.name = endpoint.name
        self.descriptor = self._socket.fileno()

    def listen(self) -> None:
        """Let clients connect from now on."""
        self._socket.listen(self._settings.backlog)

    def accept(self) -> AcceptedSocket:
        """Accept the next client. Raise BlockingIOError if there is none."""
        client, address = self._socket.accept()
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._settings.send_buffer_bytes != SYSTEM_DEFAULT:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._settings.send_buffer_bytes)
        except OSError as error:
            client.close()
            raise ConnectionAbortedError("a client disconnected while it was accepted") from error
        return AcceptedSocket(client, address[0].removeprefix(_MAPPED), address[1])

    def close(self) -> None:
        self._socket.close()


def _inherit(descriptor: int) -> socket.socket:
    listening = socket.socket(fileno=descriptor)
    listening.setblocking(False)
    return listening


def bind(endpoint: Endpoint, receive_buffer_bytes: int = SYSTEM_DEFAULT) -> socket.socket:
    """Return a socket at the address. It does not listen yet."""
    try:
        family, host = _place(endpoint.host)
    except UnicodeError:
        raise OSError(errno.EINVAL, f"cannot listen on {endpoint}: the host cannot be a name") from None
    except OSError as error:
        raise _cannot_listen(endpoint, error) from error
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if endpoint.host == "" else 1)
        if receive_buffer_bytes != SYSTEM_DEFAULT:
            # Accepted sockets inherit it. Setting it there would be too late for the TCP window scale.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        listening.bind((host, endpoint.port))
    except OSError as error:
        listening.close()
        raise _cannot_listen(endpoint, error) from error
    return listening


def _cannot_listen(endpoint: Endpoint, error: OSError) -> OSError:
    remedy = " (choose another port)" if error.errno == errno.EADDRINUSE else ""
    return OSError(error.errno, f"cannot listen on {endpoint}: {error.strerror}{remedy}")


def _place(host: str) -> tuple[int, str]:
    if host == "":
        return (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, str(address[0])
