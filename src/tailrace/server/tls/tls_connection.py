"""TlsConnection: a connection whose client speaks TLS.

It is a Connection whose socket is a TlsStream. It is held until the handshake is done (`handshakes.py`). Then a client
with a certificate gets the certificate's principal.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.model.log_fields import fields
from tailrace.server.connections.connection import HANDSHAKE, Connection
from tailrace.server.receiving.frame_input import FrameInput
from tailrace.server.tls.tls_stream import TlsStream
from tailrace.server.tls.tls_writer import TlsWriter

if TYPE_CHECKING:
    from tailrace.server.broker_interface import Handle
    from tailrace.server.connections.listener import AcceptedSocket
    from tailrace.server.tls.listener_tls import ListenerTls
    from tailrace.server.tls.tls_backlog import TlsBacklog

_LOGGER: Final = logging.getLogger("tailrace.connection")


class TlsConnection(Connection):
    __slots__ = ("_stream", "_tls", "_tls_backlog")

    def __init__(
        self,
        accepted: AcceptedSocket,
        context: ConnectionContext,
        frames: FrameInput,
        handle: Handle,
        now_ms: int,
        *,
        tls: ListenerTls,
        tls_backlog: TlsBacklog,
    ) -> None:
        self._stream = TlsStream(accepted.socket, tls.context, is_server=True)
        super().__init__(accepted.socket, context, frames, handle, now_ms)
        self.socket = self._stream
        self.hold = HANDSHAKE
        self.output = TlsWriter()
        self.recv_into = self._decrypt_into
        self._tls = tls
        self._tls_backlog = tls_backlog

    def _decrypt_into(self, view: memoryview) -> int:
        stream = self._stream
        count = stream.recv_into(view)
        if stream.has_more:
            self._tls_backlog.add(self)
        return count

    @property
    def is_authenticated(self) -> bool:
        return self._stream.is_open and super().is_authenticated

    def shake_hands(self) -> None:
        """Continue the handshake. Raise BlockingIOError until it is done, another OSError if it has failed."""
        self._stream.shake_hands()
        self.hold &= ~HANDSHAKE
        self._tls_backlog.add(self)  # the first request may have arrived with the end of the handshake
        certificate = self._stream.peer_certificate
        if certificate is not None:
            self.context.note_principal(f"User:{self._tls.rules.name_of(certificate)}")
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug(
                "the TLS handshake is done",
                extra=fields(
                    client=self.peer,
                    version=self._stream.version,
                    cipher=self._stream.cipher,
                    principal=self.context.principal,
                ),
            )
