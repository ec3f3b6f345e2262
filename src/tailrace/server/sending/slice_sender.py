"""SliceSender: sends ranges of files to sockets, by `sendfile` or by `pread` into one reused buffer.

`sendfile` moves pages to the socket without a copy through user space. `pread` copies twice, but gives the socket
larger pieces and works with files without a descriptor. Which one is cheaper depends on the network: see
docs/decisions/0010-epoll-loop.md.

With `pread`, bytes that the socket did not take are read again later, so a slow reader costs time but no memory. The
size of a read depends on how much the socket took last.

A range that has to wait for its reader is pinned: its own descriptor keeps the file, even if its segment is closed or
removed meanwhile. The number of pins is limited. Beyond the limit a range opens its file by name when its turn comes.
If the file is gone by then, the connection is closed.
"""

from __future__ import annotations

import os
import resource
from socket import socket
from typing import Final

from tailrace.log.disk.files import read_into
from tailrace.log.segments.position import FileSlice
from tailrace.server.settings import SliceStrategy

CHUNK_BYTES_MAX: Final = 131_072  # more would leave the processor's cache before the socket copies it
CHUNK_BYTES_MIN: Final = 32_768


class SliceGone(OSError):
    """A file has fewer bytes than the response announced, so the rest cannot be sent."""

    def __init__(self, path: str, position: int, missing: int) -> None:
        super().__init__(f"{path} ends {missing} bytes before the end of a range, at {position}")


class PendingSlice:
    """The unsent rest of one range of a file."""

    __slots__ = ("chunk_bytes", "descriptor", "position", "remaining", "slice")

    def __init__(self, file_slice: FileSlice) -> None:
        self.slice = file_slice
        self.position = file_slice.position
        self.remaining = file_slice.size
        self.descriptor = -1  # our own one, if the range is pinned
        self.chunk_bytes = CHUNK_BYTES_MAX

    def __len__(self) -> int:
        return self.remaining

    def read(self) -> bytes:
        """Read all of a small range."""
        if self.descriptor >= 0:
            data = os.pread(self.descriptor, self.remaining, self.position)
        else:
            data = self.slice.file.read(self.position, self.remaining)
        if len(data) < self.remaining:
            raise SliceGone(self.slice.file.path, self.position, self.remaining - len(data))
        return data

    def take(self, limit: int) -> bytes:
        """Return the next bytes, at most the limit; they count as sent."""
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
        self._pins_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 16

    def send(self, target: socket, pending: PendingSlice, limit: int) -> tuple[int, int]:
        """Send what the socket takes, up to `limit`. Return how much it was given, and how much it took.
        Raise BlockingIOError if it takes nothing."""
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
            return read_into(pending.descriptor, chunk, pending.position)
        return pending.slice.file.read_into(pending.position, chunk)

    def pin(self, pending: PendingSlice) -> None:
        """Keep a file open for a range that has to wait."""
        if pending.descriptor >= 0 or self.pins >= self._pins_max:
            return
        try:
            pending.descriptor = os.dup(pending.slice.file.fileno())
        except OSError:
            # A file in memory, or no free descriptor: the file is opened by name later, or the connection is closed.
            return
        self.pins += 1

    def unpin(self, pending: PendingSlice) -> None:
        """Close the file of a range that was sent, or will not be."""
        if pending.descriptor >= 0:
            os.close(pending.descriptor)
            pending.descriptor = -1
            self.pins -= 1
