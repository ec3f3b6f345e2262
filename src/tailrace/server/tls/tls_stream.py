"""TlsStream: TLS over a non-blocking socket, as server or client, for a caller with a poll.

Bytes go through memory. Received bytes are fed to OpenSSL and decrypted into the caller's buffer. Bytes to send are
encrypted one piece at a time, and the next piece only when the socket has taken the last one. So a peer that does not
read costs one piece of memory, and no call blocks.

    recv_into(view)    like a socket's, after the handshake. Raise BlockingIOError if there is nothing yet
    has_more           True if decrypted bytes wait here, which no poll reports
    write(data), flush(), unsent

The size of a handshake is limited here; the caller limits its time. If OpenSSL refuses a peer, its alert is sent before
the error is raised.
"""

from __future__ import annotations

import contextlib
import ssl
from socket import socket
from typing import Any, Final

READ_BYTES: Final = 65_536  # of ciphertext, per read
HANDSHAKE_BYTES_MAX: Final = 131_072  # a long chain of certificates has 10 KB
UNASKED_BYTES_MAX: Final = 16_384  # unread responses that a peer may cause without requests: key updates
_NOTHING: Final = memoryview(b"")


class TlsFailed(OSError):
    """The peer exceeds a limit."""


class TlsStream:
    __slots__ = (
        "_handshake_bytes",
        "_incoming",
        "_is_ended",
        "_outgoing",
        "_raw",
        "_tls",
        "_waiting",
        "has_more",
        "is_open",
    )

    def __init__(self, raw: socket, context: ssl.SSLContext, *, is_server: bool, host: str | None = None) -> None:
        self._raw = raw
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server, server_hostname=host)
        self._waiting = _NOTHING  # encrypted bytes that the socket has not taken
        self._handshake_bytes = 0
        self._is_ended = False  # the peer will send nothing more
        self.is_open = False  # the handshake is done
        self.has_more = False

    def fileno(self) -> int:
        return self._raw.fileno()

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate as DER, or None."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def version(self) -> str | None:
        return self._tls.version()

    @property
    def cipher(self) -> str:
        found = self._tls.cipher()
        return found[0] if found else ""

    # Reading

    def shake_hands(self) -> None:
        """Continue the handshake. Raise BlockingIOError until it is done, an OSError if it failed."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.flush()
                data = self._raw.recv(READ_BYTES)
                if not data:
                    raise ConnectionResetError("the peer closed the connection during the handshake") from None
                self._handshake_bytes += len(data)
                if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
                    raise TlsFailed(f"the handshake exceeds {HANDSHAKE_BYTES_MAX} bytes") from None
                self._incoming.write(data)
            except ssl.SSLError:
                self._send_alert()
                raise
            else:
                self.is_open = True
                self.flush()
                return

    def recv_into(self, view: memoryview) -> int:
        """Decrypt into the buffer; 0 at the end of the stream."""
        if not self.is_open:
            self.shake_hands()
        try:
            filled = self._fill(view)
        except ssl.SSLError:
            self._send_alert()
            raise
        if self._outgoing.pending and self.flush() == 0 and self._outgoing.pending > UNASKED_BYTES_MAX:
            raise TlsFailed("the peer causes TLS responses but does not read them")
        if not filled and not self._is_ended:
            raise BlockingIOError
        return filled

    def _fill(self, view: memoryview) -> int:
        filled = self._decrypt(view, 0)
        while filled < len(view) and not self._is_ended:
            try:
                data = self._raw.recv(READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                # There was no closing alert. The length of the last frame shows if something is missing.
                self._is_ended = True
                break
            self._incoming.write(data)
            filled = self._decrypt(view, filled)
            if len(data) < READ_BYTES:
                break
        if filled == len(view):
            self.has_more = self._tls.pending() > 0 or self._incoming.pending > 0
        else:
            self.has_more = self._is_ended and filled > 0
        return filled

    def _decrypt(self, view: memoryview, filled: int) -> int:
        """Decrypt into the buffer after the first `filled` bytes; return the new number of bytes."""
        size = len(view)
        try:
            while filled < size:
                count: Any = self._tls.read(size - filled, view[filled:])
                if not count:
                    self._is_ended = True
                    break
                filled += count
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._is_ended = True
        return filled

    # Writing

    @property
    def unsent(self) -> int:
        """The number of encrypted bytes that the socket has not taken."""
        return len(self._waiting) + self._outgoing.pending

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt; `flush` sends it. Call it only if nothing is unsent, with as much as may be held in memory."""
        count = self._tls.write(data)
        if count < len(data):  # one record at a time
            view = memoryview(data)
            while count < len(view):
                count += self._tls.write(view[count:])

    def flush(self) -> int:
        """Send what the socket takes; return the number of bytes."""
        total = 0
        while True:
            if not self._waiting:
                if not self._outgoing.pending:
                    return total
                self._waiting = memoryview(self._outgoing.read())
            try:
                sent = self._raw.send(self._waiting)
            except BlockingIOError:
                return total
            total += sent
            self._waiting = self._waiting[sent:]
            if self._waiting:
                return total

    def _send_alert(self) -> None:
        with contextlib.suppress(OSError):
            self.flush()

    def close(self) -> None:
        """Send a closing alert, if there is room for it, and close."""
        if self.is_open and not self.unsent:
            # `unwrap` raises until the other side has sent its closing alert too, and nobody waits for that.
            with contextlib.suppress(OSError):
                self._tls.unwrap()
            self._send_alert()
        self._raw.close()
