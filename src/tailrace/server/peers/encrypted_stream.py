"""EncryptedStream: a stream with TLS to another node, as its client."""

from __future__ import annotations

from socket import socket
from typing import Final

from tailrace.client.security.tls_settings import Tls
from tailrace.client.security.tls_socket import client_context
from tailrace.server.tls.tls_stream import TlsStream

PIECE_BYTES: Final = 65_536


class EncryptedStream(TlsStream):
    __slots__ = ()
    may_hold_more = True

    def __init__(self, made: socket, tls: Tls, host: str) -> None:
        super().__init__(made, client_context(tls), is_server=False, host=host)

    def send(self, data: memoryview) -> int:
        self.flush()
        if self.unsent:
            raise BlockingIOError
        piece = data[:PIECE_BYTES]
        self.write(piece)
        self.flush()
        return len(piece)
