"""TlsWriter: a ResponseWriter that encrypts, for a connection with TLS.

Parts are joined to pieces of 64 KB, with ranges of files read. A piece is encrypted when the socket has taken the one
before. So at most one encrypted piece is held. After 2 MB other connections get their turn.
"""

from __future__ import annotations

from typing import Any, Final

from tailrace.log.segments.position import FileSlice
from tailrace.server.sending.response_writer import SEND_BYTES_MAX, ResponseWriter
from tailrace.server.sending.slice_sender import PendingSlice, SliceSender
from tailrace.server.tls.tls_stream import TlsStream

PIECE_BYTES: Final = 65_536  # four full records


class TlsWriter(ResponseWriter):
    __slots__ = ("_encrypted",)

    def __init__(self) -> None:
        super().__init__()
        self._encrypted = 0  # bytes of `size` that the stream has encrypted already

    def send(self, target: TlsStream, slices: SliceSender) -> int:
        total = 0
        queued = self.size - self._encrypted
        while True:
            total += target.flush()
            if target.unsent or not queued or total >= SEND_BYTES_MAX:
                break
            piece = self._take_piece(slices)
            queued -= len(piece)
            target.write(piece)
        self._encrypted = target.unsent
        self.size = queued + self._encrypted
        if self._slices and not self._is_pinned:
            self._pin(slices)
        return total

    def _take_piece(self, slices: SliceSender) -> bytes | bytearray | memoryview:
        """Return the next bytes of the queue."""
        queue = self._queue
        pieces: list[bytes | bytearray | memoryview] = []
        room = PIECE_BYTES
        while queue and room:
            part = queue[0]
            if isinstance(part, FileSlice):
                queue[0] = part = PendingSlice(part)
            if isinstance(part, PendingSlice):
                data: Any = part.take(room)
                if not part.remaining:
                    slices.unpin(part)
                    self._slices -= 1
                    queue.popleft()
            elif len(part) > room:
                view = memoryview(part)
                data, queue[0] = view[:room], view[room:]
            else:
                data = queue.popleft()
            pieces.append(data)
            room -= len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
