"""TlsSocket: a TCP connection with TLS around it."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from functools import lru_cache

from tailrace.client.addresses import Address
from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security import Tls


class TlsSocket:
    def __init__(self, address: Address, timeout_s: float, tls: Tls) -> None:
        plain = socket.create_connection(address, timeout_s)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = client_context(tls).wrap_socket(plain, server_hostname=address.host)
        except BaseException:
            plain.close()
            raise
        self.sendall = self._socket.sendall
        self.recv_into: Callable[[memoryview], int] = self._socket.recv_into
        self.settimeout = self._socket.settimeout
        self.close = self._socket.close

    def has_news(self) -> bool:
        if self._socket.pending():
            return True
        self._socket.setblocking(False)
        try:
            # TLS has no peeking. Tickets for a next session arrive unasked and are no news; reading deals with them. A
            # byte that is taken belongs to nobody: with news a connection is not used again.
            self._socket.recv(1)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            return True
        return True


@lru_cache(maxsize=16)
def client_context(tls: Tls) -> ssl.SSLContext:
    """UnsupportedSecurity if a certificate or key cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.authorities_file, cadata=tls.authorities)
        context.check_hostname = tls.checks_name
        load_identity(context, tls)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise UnsupportedSecurity(f"a certificate or key cannot be read as PEM: {error}") from error
    return context


def load_identity(context: ssl.SSLContext, tls: Tls) -> None:
    """The key and the certificates, if there are any."""
    if tls.identity_file is not None:
        context.load_cert_chain(tls.identity_file, password=tls.key_password or "")
    elif tls.certificates is not None and tls.key is not None:
        _load_text(context, f"{tls.certificates}\n{tls.key}", tls.key_password)


def _load_text(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Python reads keys from files only: one that nobody else can read, for as long as it takes."""
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(pem)
        context.load_cert_chain(name, password=password or "")
    finally:
        os.unlink(name)
