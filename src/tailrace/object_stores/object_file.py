"""ObjectFile: an object with the interface of a file, read with few requests.

Small reads, such as those of headers and indexes, are served from a window that is fetched in one request. During
sequential reads each window is twice as large as the previous one. Ranges that will certainly be read are announced
(`will_read`) and fetched by a `ReadAhead`, which never fetches more than announced.
"""

from __future__ import annotations

import errno
from collections import deque
from threading import Lock

from tailrace.log.disk import file_names
from tailrace.object_stores.read_ahead import PART_BYTES, Part, ReadAhead
from tailrace.object_stores.store import ListedObject, ObjectReader, ObjectStore
from tailrace.records.batch import Buffer

FIRST_WINDOW = 64 * 1024
_MAP_CHUNK = 256 * 1024
_INDEXES = (file_names.OFFSET_INDEX, file_names.TIME_INDEX)


class KnownObject:
    """One version of an object, with its last small window, which is reused when the object is opened again."""

    def __init__(self, path: str, found: ListedObject, store: ObjectStore) -> None:
        self.path = path
        self.found = found
        self.window: tuple[int, bytes] = (0, b"")
        self._store = store
        self._reader: ObjectReader | None = None
        self._opening = Lock()

    def fetch(self, position: int, size: int) -> bytes:
        """Fetch a range. Thread-safe."""
        with self._opening:
            if self._reader is None:
                self._reader = self._store.open(self.path)
        return self._reader.read(position, size)


class ObjectFile:
    def __init__(self, known: KnownObject, ahead: ReadAhead) -> None:
        self.path = known.path
        self._known = known
        self._size = known.found.size
        self._ahead = ahead
        self._window_start, self._window = known.window
        self._window_bytes = FIRST_WINDOW
        self._announced: deque[Part] = deque()  # consecutive, in order
        self._part: tuple[int, bytes] = (0, b"")  # start position and bytes of the last taken part

    def size(self) -> int:
        """Return the size in the last listing of the folder."""
        return self._size

    # Small reads

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
        is_sequential = self._window and 0 <= position - self._window_start <= len(self._window) + FIRST_WINDOW
        self._window_bytes = min(self._window_bytes * 2, PART_BYTES) if is_sequential else FIRST_WINDOW
        wanted = min(max(size, self._window_bytes), self._size - position)
        self._window, self._window_start = self._known.fetch(position, wanted), position
        if wanted <= FIRST_WINDOW:
            self._known.window = self._window_start, self._window

    # Large reads

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
                # After such a long sequential read, the rest will probably be read as well.
                self._window_bytes = FIRST_WINDOW
                self.will_read(position + done, self._size)
        return done

    def will_read(self, start: int, end: int) -> None:
        """Announce a range that will be read sequentially."""
        end = min(end, self._size)
        if self._announced and (self._announced[0].start, self._announced[-1].end) == (start, end):
            return
        self._forget_parts()
        if self._window_start <= start and end <= self._window_start + len(self._window):
            return  # the window has the range
        self._announced += [
            Part(at, min(at + PART_BYTES, end), self._known.fetch) for at in range(start, end, PART_BYTES)
        ]
        self._ahead.announce(self._announced)

    def _is_ahead(self, position: int) -> bool:
        start, part = self._part
        if start <= position < start + len(part):
            return True
        return bool(self._announced) and self._announced[0].start <= position < self._announced[-1].end

    def _part_at(self, position: int) -> tuple[int, bytes]:
        start, part = self._part
        while self._announced and not start <= position < start + len(part):
            coming = self._announced.popleft()
            self._part = 0, b""
            start, part = coming.start, self._ahead.take(coming)
        self._part = start, part
        return self._part

    # Other operations

    def map(self) -> Buffer:
        """Return the whole content. The zeros at the end of an index, which can be megabytes, are not fetched."""
        content = bytearray(self._size)
        may_end_in_zeros = self.path.endswith(_INDEXES)
        for position in range(0, self._size, _MAP_CHUNK):
            chunk = self.read(position, _MAP_CHUNK)
            content[position : position + len(chunk)] = chunk
            if may_end_in_zeros and not any(chunk):
                break
        return memoryview(content)

    def release(self) -> None:
        """Release fetched parts that were not read, and a large window."""
        self._forget_parts()
        if len(self._window) > FIRST_WINDOW:
            self._window = b""
            self._window_bytes = FIRST_WINDOW

    close = release

    def _forget_parts(self) -> None:
        self._ahead.drop(self._announced)
        self._announced.clear()
        self._part = 0, b""

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "an object has no file descriptor", self.path)

    def write(self, position: int, data: Buffer) -> None:
        raise read_only(self.path)

    def allocate(self, size: int) -> None:
        raise read_only(self.path)

    def truncate(self, size: int) -> None:
        raise read_only(self.path)

    def sync(self) -> None:
        raise read_only(self.path)


def read_only(path: str) -> OSError:
    return OSError(errno.EROFS, "object stores are read-only", path)
