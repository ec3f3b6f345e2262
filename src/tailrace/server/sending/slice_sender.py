"""SliceSender: ranges of files onto sockets, by `sendfile` or by `pread` into one buffer that is used again.

`sendfile` moves pages to the socket without a copy through user space. `pread` copies twice, but hands the socket
larger pieces and works with files that have no descriptor. Which is cheaper depends on the network: see
docs/decisions/0010-epoll-loop.md.

With `pread`, bytes that the socket did not take are read again later, so a slow reader costs time and not memory. How
much is read at once follows what the socket took last.

A range that has to wait for its reader is pinned: a descriptor of its own keeps the file, even if its segment is closed
or removed meanwhile. Pins are counted and bounded; beyond the bound a range opens its file by name when its turn comes,
and if the file is gone by then the connection goes.
"""

from __future__ import annotations

import os
import resource
from socket import socket
from typing import Final

from tailrace.log.segments.position import FileSlice
from tailrace.server.settings import SliceStrategy

CHUNK_BYTES_MAX: Final = 131_072  # more would be out of the processor's cache before the socket copies it
CHUNK_BYTES_MIN: Final = 32_768


class SliceGone(OSError):
    """A file has fewer bytes than the response has promised; the rest of it cannot be sent."""

    def __init__(self, path: str, position: int, missing: int) -> None:
        super().__init__(f"{path} ends {missing} bytes before the end of a range, at {position}")


class PendingSlice:
    """What is left to send of one range of a file."""

    __slots__ = ("chunk_bytes", "descriptor", "position", "remaining", "slice")

    def __init__(self, file_slice: FileSlice) -> None:
        self.slice = file_slice
        self.position = file_slice.position
        self.remaining = file_slice.size
        self.descriptor = -1  # ours, if it is pinned
        self.chunk_bytes = CHUNK_BYTES_MAX

    def __len__(self) -> int:
        return self.remaining

    def read(self) -> bytes:
        """All of it; for small ones."""
        if self.descriptor >= 0:
            data = os.pread(self.descriptor, self.remaining, self.position)
        else:
            data = self.slice.file.read(self.position, self.remaining)
        if len(data) < self.remaining:
            raise SliceGone(self.slice.file.path, self.position, self.remaining - len(data))
        return data

    def take(self, limit: int) -> bytes:
        """The next bytes of it, no more than the limit; they count as sent."""
        size = min(self.remaining, limit)
        if self.descriptor >= 0:
            data = os.pread(self.descriptor, size, self.position)
        else:
            data = self.slice.file.read(self.position, size)
        if len(data) < size:
            raise SliceGone(self.slice.file.path, self.position, size - len(data))
        self.position += size
        self.remaining -= size
        return data


class SliceSender:
    """Sends ranges for all connections of a loop."""

    def __init__(self, strategy: SliceStrategy) -> None:
        self._uses_sendfile = strategy is SliceStrategy.SENDFILE
        self._buffer = memoryview(b"") if self._uses_sendfile else memoryview(bytearray(CHUNK_BYTES_MAX))
        self.pins = 0
        self._pins_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4

    def send(self, target: socket, pending: PendingSlice, limit: int) -> tuple[int, int]:
        """Send what the socket takes, up to `limit`: (how much it was given, how much it took). BlockingIOError if it
        takes nothing."""
        if self._uses_sendfile:
            wanted = min(pending.remaining, limit)
            descriptor = pending.descriptor if pending.descriptor >= 0 else pending.slice.file.fileno()
            sent = os.sendfile(target.fileno(), descriptor, pending.position, wanted)
            if sent == 0:
                raise SliceGone(pending.slice.file.path, pending.position, pending.remaining)
        else:
            wanted = min(pending.remaining, limit, pending.chunk_bytes)
            chunk = self._buffer[:wanted]
            if self._read_into(pending, chunk) < wanted:
                raise SliceGone(pending.slice.file.path, pending.position, pending.remaining)
            sent = target.send(chunk)
            pending.chunk_bytes = CHUNK_BYTES_MAX if sent == wanted else max(sent, CHUNK_BYTES_MIN)
        pending.position += sent
        pending.remaining -= sent
        return wanted, sent

    def _read_into(self, pending: PendingSlice, chunk: memoryview) -> int:
        if pending.descriptor >= 0:
            return os.preadv(pending.descriptor, [chunk], pending.position)
        return pending.slice.file.read_into(pending.position, chunk)

    def pin(self, pending: PendingSlice) -> None:
        """Keep the file of a range that has to wait."""
        if pending.descriptor >= 0 or self.pins >= self._pins_max:
            return
        try:
            pending.descriptor = os.dup(pending.slice.file.fileno())
        except OSError:
            # A file in memory, or no descriptor left: it is found by its name later, or else the connection goes.
            return
        self.pins += 1

    def unpin(self, pending: PendingSlice) -> None:
        """The range has been sent, or never will be."""
        if pending.descriptor >= 0:
            os.close(pending.descriptor)
            pending.descriptor = -1
            self.pins -= 1
