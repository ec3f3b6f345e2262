"""ResponseWriter: the unsent responses of one connection, in order.

A response is its size, then its parts: encoded bytes and ranges of files. Small responses that are ready together are
sent with one call. A response of up to 64 KB is joined at once, with its ranges read. In larger ones, ranges up to 32
KB are read and sent with the bytes around them, at most 64 KB of them at a time. Larger ranges go through the
`SliceSender`. Bytes before a range are marked as such (MSG_MORE), and share its first packet.

Bytes that the socket does not take stay here, and the caller waits until it is writable. Only joined small parts are
copied.
"""

from __future__ import annotations

import socket as sockets
from collections import deque
from socket import socket
from struct import Struct
from typing import Any, Final, Protocol

from tailrace.broker.requests.request_context import Part
from tailrace.log.segments.position import FileSlice
from tailrace.model.system_calls import lacks
from tailrace.server.sending.slice_sender import PendingSlice, SliceSender

JOIN_BYTES_MAX: Final = 65_536  # up to this size joining parts costs less than a system call with many parts
SMALL_SLICE_BYTES: Final = 32_768
GATHER_BYTES_MAX: Final = 1_048_576
GATHER_PARTS_MAX: Final = 512  # below every system's IOV_MAX
SEND_BYTES_MAX: Final = 2_097_152  # in one pass, so that one fast reader does not delay the others
_SIZE: Final = Struct(">i")
_MSG_MORE: Final = 0 if lacks(sockets, "MSG_MORE") else sockets.MSG_MORE


class Stream(Protocol):
    """The socket of a connection, or a TLS stream."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class ResponseWriter:
    __slots__ = ("_is_pinned", "_queue", "_slices", "size")

    def __init__(self) -> None:
        self._queue: deque[Any] = deque()  # buffers, and ranges of files
        self._slices = 0  # number of ranges in the queue
        self._is_pinned = False  # their files are pinned
        self.size = 0  # the bytes still to be sent

    def add(self, parts: list[Part]) -> None:
        """Queue a response."""
        if len(parts) == 1 and isinstance(only := parts[0], bytes | bytearray):  # the usual case: no need to join later
            self._queue.append(_SIZE.pack(len(only)) + only)
            self.size += len(only) + _SIZE.size
            return
        size = slices = 0
        for part in parts:
            size += len(part)
            if isinstance(part, FileSlice):
                slices += 1
        if slices and size <= JOIN_BYTES_MAX and (whole := _read_whole(parts, size)) is not None:
            self._queue.append(whole)
        else:
            self._queue.append(_SIZE.pack(size))
            self._queue.extend(parts)
            if slices:
                self._slices += slices
                self._is_pinned = False
        self.size += size + _SIZE.size

    def send(self, target: Any, slices: SliceSender) -> int:
        """Send what the socket takes; return the number of bytes. Raise OSError if the connection or a file is lost."""
        queue = self._queue
        if self._slices or self.size > JOIN_BYTES_MAX:
            return self._send_parts(target, slices)
        data = queue[0] if len(queue) == 1 else b"".join(queue)
        queue.clear()
        try:
            sent: int = target.send(data)
        except BlockingIOError:
            sent = 0
        self.size -= sent
        if self.size:
            queue.append(memoryview(data)[sent:])
        return sent

    def clear(self, slices: SliceSender) -> None:
        """Drop everything, because the connection is lost."""
        for part in self._queue:
            if isinstance(part, PendingSlice):
                slices.unpin(part)
        self._queue.clear()
        self._slices = self.size = 0

    def _send_parts(self, target: socket, slices: SliceSender) -> int:
        queue = self._queue
        total = 0
        while queue and total < SEND_BYTES_MAX:
            head = queue[0]
            if isinstance(head, FileSlice):
                queue[0] = head = PendingSlice(head)
            if isinstance(head, PendingSlice) and head.remaining > SMALL_SLICE_BYTES:
                took_all, sent = self._send_slice(target, slices, head, SEND_BYTES_MAX - total)
            else:
                took_all, sent = self._send_gathered(target, slices)
            total += sent
            self.size -= sent
            if not took_all:
                break
        if self._slices and not self._is_pinned:
            self._pin(slices)
        return total

    def _pin(self, slices: SliceSender) -> None:
        """Pin the files, because the queue has to wait."""
        self._is_pinned = True
        for index, part in enumerate(list(self._queue)):
            if isinstance(part, FileSlice):
                self._queue[index] = part = PendingSlice(part)
            if isinstance(part, PendingSlice):
                slices.pin(part)

    def _send_slice(self, target: socket, slices: SliceSender, head: PendingSlice, limit: int) -> tuple[bool, int]:
        try:
            wanted, sent = slices.send(target, head, limit)
        except BlockingIOError:
            return False, 0
        if not head.remaining:
            slices.unpin(head)
            self._queue.popleft()
            self._slices -= 1
        return sent == wanted, sent

    def _send_gathered(self, target: socket, slices: SliceSender) -> tuple[bool, int]:
        """Send the bytes in memory up to the next large range; small ranges are read."""
        queue = self._queue
        buffers: list[bytes | bytearray | memoryview] = []
        size = read = 0
        while queue and len(buffers) < GATHER_PARTS_MAX and size < GATHER_BYTES_MAX:
            part = queue[0]
            if isinstance(part, FileSlice):
                queue[0] = part = PendingSlice(part)
            if isinstance(part, PendingSlice):
                if part.remaining > SMALL_SLICE_BYTES or read > JOIN_BYTES_MAX - SMALL_SLICE_BYTES:
                    break
                data = part.read()
                slices.unpin(part)
                self._slices -= 1
                read += len(data)
                part = data
            queue.popleft()
            buffers.append(part)
            size += len(part)
        flags = _MSG_MORE if queue else 0
        if size <= JOIN_BYTES_MAX:
            buffers = [b"".join(buffers)]
        try:
            sent = target.sendmsg(buffers, (), flags)
        except BlockingIOError:
            sent = 0
        if sent == size:
            return True, sent
        self._put_back(buffers, sent)
        return False, sent

    def _put_back(self, buffers: list[bytes | bytearray | memoryview], sent: int) -> None:
        """Put back the bytes after the first `sent` ones."""
        for index, part in enumerate(buffers):
            if sent < len(part):
                self._queue.extendleft(reversed(buffers[index + 1 :]))
                self._queue.appendleft(memoryview(part)[sent:])
                return
            sent -= len(part)


def _read_whole(parts: list[Part], size: int) -> bytes | None:
    """Join a small response, with its ranges read. Return None if a read failed; sending reports the error."""
    try:
        pieces = [part.read() if isinstance(part, FileSlice) else part for part in parts]
    except OSError:
        return None
    whole = b"".join([_SIZE.pack(size), *pieces])
    return whole if len(whole) == size + _SIZE.size else None
