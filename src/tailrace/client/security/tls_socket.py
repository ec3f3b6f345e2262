"""TlsSocket: a TCP connection with TLS."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.network.address import Address
from tailrace.client.security.key_entries import UnreadableStore
from tailrace.client.security.key_stores import is_pem_file, read_store
from tailrace.client.security.tls_settings import Tls


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

    def has_input(self) -> bool:
        if self._socket.pending():
            return True
        self._socket.setblocking(False)
        try:
            # TLS cannot peek. A read processes session tickets, which arrive at any time and are not input. It may
            # consume a byte; that is harmless, because a connection with unexpected input is not used again.
            self._socket.recv(1)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            return True
        return True


@lru_cache(maxsize=16)
def client_context(tls: Tls) -> ssl.SSLContext:
    """Return an SSL context. Raise UnsupportedSecurity if a certificate or key cannot be used."""
    try:
        context = ssl.create_default_context(**authorities(tls))
        context.check_hostname = tls.checks_name
        load_identity(context, tls)
    except UnreadableStore as error:
        raise UnsupportedSecurity(str(error)) from error
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        if unreadable := _unreadable_file(tls):
            raise UnsupportedSecurity(unreadable) from error
        raise UnsupportedSecurity(f"a certificate or key cannot be read as PEM: {error}") from error
    return context


def _unreadable_file(tls: Tls) -> str | None:
    """Return the first file that cannot be read, with the reason. OpenSSL's errors have no file names."""
    for path in (tls.authorities_file, tls.identity_file):
        try:
            if path is not None:
                with open(path, "rb"):
                    pass
        except OSError as error:
            return f"{path}: {error.strerror}"
    return None


def authorities(tls: Tls) -> Mapping[str, Any]:
    """Return cafile and cadata for `load_verify_locations`; both are None if no trust store is set."""
    if tls.authorities_file is None or _is_pem(tls.authorities_file, tls.authorities_type):
        return {"cafile": tls.authorities_file, "cadata": tls.authorities}
    trusted = read_store(tls.authorities_file, tls.authorities_password).authorities
    if not trusted:
        raise UnreadableStore(f"trust store {tls.authorities_file} has no certificate")
    return {"cafile": None, "cadata": b"".join(trusted)}


def load_identity(context: ssl.SSLContext, tls: Tls) -> None:
    """Load the private key and its certificates, if there are any."""
    if tls.identity_file is not None:
        if _is_pem(tls.identity_file, tls.identity_type):
            context.load_cert_chain(tls.identity_file, password=tls.key_password or "")
        else:
            _load_store(context, tls.identity_file, tls)
    elif tls.certificates is not None and tls.key is not None:
        _load_text(context, f"{tls.certificates}\n{tls.key}", tls.key_password)


def _is_pem(path: str, kind: str | None) -> bool:
    return kind == "PEM" or (kind is None and is_pem_file(path))


def _load_store(context: ssl.SSLContext, path: str, tls: Tls) -> None:
    """Load all keys of a store.

    OpenSSL keeps the last loaded key of each algorithm, so they are loaded in reverse order: the first of the store
    wins.
    """
    keys = read_store(path, tls.identity_password, tls.key_password).keys
    if not keys:
        raise UnreadableStore(f"key store {path} has no private key, or ssl.keystore.password is missing")
    for entry in reversed(keys):
        try:
            _load_text(context, entry.pem(), None)
        except ssl.SSLError as error:
            raise UnreadableStore(f"key store {path}: entry {entry.alias!r} cannot be used: {error}") from error


def _load_text(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Load a key from text. Python reads keys only from files, so the text is written to one.

    The file is in memory if possible, otherwise a temporary file that only its owner can read.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("key"), "w") as memory:
            memory.write(pem)
            memory.flush()
            context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}", password=password or "")
        return
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(pem)
        context.load_cert_chain(name, password=password or "")
    finally:
        os.unlink(name)
