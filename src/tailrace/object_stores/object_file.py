"""ObjectFile: an object as the log's code reads a file, with few requests.

What is asked for in small pieces, as headers and indexes are, comes out of a window that is fetched at once; while
reading goes on in order, each window is twice the one before. What will surely be read is said before
(`will_read`): it is fetched in parts, some of them at the same time, and never past what was said.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

from tailrace.log import file_names
from tailrace.object_stores.store import Found, ObjectReader, ObjectStore
from tailrace.records.batch import Buffer

FIRST_WINDOW = 64 * 1024
PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4  # what a task holds in memory, and what makes up for a store that is slow to begin
_MAP_CHUNK = 256 * 1024
_INDEXES = (file_names.OFFSET_INDEX, file_names.TIME_INDEX)


class KnownObject:
    """One version of an object, with the last small window of it: whoever opens it again finds that."""

    def __init__(self, path: str, found: Found, store: ObjectStore) -> None:
        self.path = path
        self.found = found
        self.window: tuple[int, bytes] = (0, b"")
        self._store = store
        self._reader: ObjectReader | None = None

    def opened(self) -> ObjectReader:
        if self._reader is None:
            self._reader = self._store.open(self.path)
        return self._reader


class ObjectFile:
    def __init__(self, known: KnownObject, pool: Callable[[], Executor]) -> None:
        self.path = known.path
        self._known = known
        self._size = known.found.size
        self._pool = pool
        self._window_start, self._window = known.window
        self._window_bytes = FIRST_WINDOW
        self._parts: deque[tuple[int, Future[bytes]]] = deque()  # where each begins, in order
        self._part: tuple[int, bytes] = (0, b"")
        self._next = self._end = 0  # of what was announced: where the next part begins, and where it ends

    def size(self) -> int:
        """As the folder's last listing said."""
        return self._size

    # Small pieces

    def read(self, position: int, size: int) -> bytes:
        size = min(size, self._size - position)
        if size <= 0:
            return b""
        if self._is_ahead(position):
            found = bytearray(size)
            return bytes(found[: self.read_into(position, memoryview(found))])
        start = position - self._window_start
        if not 0 <= start <= start + size <= len(self._window):
            self._move_window(position, size)
            start = position - self._window_start
        return self._window[start : start + size]

    def _move_window(self, position: int, size: int) -> None:
        goes_on = self._window and 0 <= position - self._window_start <= len(self._window) + FIRST_WINDOW
        self._window_bytes = min(self._window_bytes * 2, PART_BYTES) if goes_on else FIRST_WINDOW
        wanted = min(max(size, self._window_bytes), self._size - position)
        self._window, self._window_start = self._known.opened().read(position, wanted), position
        if wanted <= FIRST_WINDOW:
            self._known.window = self._window_start, self._window

    # Large pieces

    def read_into(self, position: int, buffer: memoryview) -> int:
        done = 0
        while done < len(buffer) and position + done < self._size:
            at = position + done
            piece: Buffer
            if self._is_ahead(at):
                start, part = self._part_at(at)
                piece = memoryview(part)[at - start : at - start + len(buffer) - done]
            else:
                piece = self.read(at, min(len(buffer) - done, PART_BYTES))
            if not piece:
                break  # the object has become shorter
            buffer[done : done + len(piece)] = piece
            done += len(piece)
            if self._window_bytes == PART_BYTES and not self._is_ahead(at):
                # Whoever has read this far in order reads the rest, too.
                self._window_bytes = FIRST_WINDOW
                self.will_read(position + done, self._size)
        return done

    def will_read(self, start: int, end: int) -> None:
        """Bytes that are about to be read, in order."""
        self._forget_parts()
        if self._window_start <= start and end <= self._window_start + len(self._window):
            return  # they are there
        self._next, self._end = start, min(end, self._size)
        self._announce()

    def _announce(self) -> None:
        while self._next < self._end and len(self._parts) < PARTS_AT_ONCE:
            size = min(PART_BYTES, self._end - self._next)
            self._parts.append((self._next, self._pool().submit(self._known.opened().read, self._next, size)))
            self._next += size

    def _is_ahead(self, position: int) -> bool:
        start, part = self._part
        return start <= position < start + len(part) or bool(self._parts and self._parts[0][0] <= position < self._end)

    def _part_at(self, position: int) -> tuple[int, bytes]:
        start, part = self._part
        while self._parts and not start <= position < start + len(part):
            start, coming = self._parts.popleft()
            part = coming.result()
            self._announce()
        self._part = start, part
        return self._part

    # The rest of a file

    def map(self) -> Buffer:
        """The whole content. Of an index's tail of zeros, which can be megabytes, only the start is fetched."""
        content = bytearray(self._size)
        may_end_in_zeros = self.path.endswith(_INDEXES)
        for position in range(0, self._size, _MAP_CHUNK):
            chunk = self.read(position, _MAP_CHUNK)
            content[position : position + len(chunk)] = chunk
            if may_end_in_zeros and not any(chunk):
                break
        return memoryview(content)

    def release(self) -> None:
        """Let go of what was fetched and not asked for, and of a large window."""
        self._forget_parts()
        if len(self._window) > FIRST_WINDOW:
            self._window = b""
            self._window_bytes = FIRST_WINDOW

    close = release

    def _forget_parts(self) -> None:
        for _, coming in self._parts:
            coming.cancel()
        self._parts.clear()
        self._part = 0, b""
        self._next = self._end = 0

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "is no file of this machine", self.path)

    def write(self, position: int, data: Buffer) -> None:
        raise read_only(self.path)

    def allocate(self, size: int) -> None:
        raise read_only(self.path)

    def truncate(self, size: int) -> None:
        raise read_only(self.path)

    def sync(self) -> None:
        raise read_only(self.path)


def read_only(path: str) -> OSError:
    return OSError(errno.EROFS, "an object store is only read from", path)
