"""Files of the view: a range of a stored file, bytes in memory, and a compressed log. All are read-only."""

from __future__ import annotations

import errno
from typing import Final, Protocol

from tailrace.log.disk.files import File, Files, ReadsAhead
from tailrace.records.batch import Buffer
from tailrace.tiers.stores.aiven.chunk_index import ChunkIndex, WrongManifest, unpack

_WHOLE: Final = 256 * 1024 * 1024  # of a file that is read as a whole


class Source(Protocol):
    """The content of a file of the view."""

    @property
    def size(self) -> int: ...
    def open(self, files: Files, path: str) -> File: ...


class ReadOnlyFile:
    """The operations that are the same for all files of the view."""

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self._size = size

    def size(self) -> int:
        return self._size

    def read(self, position: int, size: int) -> bytes:
        raise NotImplementedError

    def read_into(self, position: int, buffer: memoryview) -> int:
        found = self.read(position, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def map(self) -> Buffer:
        if self._size > _WHOLE:
            raise OSError(errno.EFBIG, f"the file has {self._size:,} bytes; the limit is {_WHOLE:,}", self.path)
        return memoryview(self.read(0, self._size))

    def release(self) -> None:
        """Do nothing: there is no descriptor."""

    def close(self) -> None:
        self.release()

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a part of a remote segment has no file descriptor", self.path)

    def write(self, position: int, data: Buffer) -> None:
        raise read_only_error(self.path)

    def allocate(self, size: int) -> None:
        raise read_only_error(self.path)

    def truncate(self, size: int) -> None:
        raise read_only_error(self.path)

    def sync(self) -> None:
        raise read_only_error(self.path)


class MemoryFile(ReadOnlyFile):
    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(path, len(data))
        self._data = data

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


class RangeFile(ReadOnlyFile):
    """A range of a stored file."""

    def __init__(self, path: str, inner: File, start: int, size: int) -> None:
        super().__init__(path, size)
        self._inner = inner
        self._start = start

    def read(self, position: int, size: int) -> bytes:
        return self._inner.read(self._start + position, max(min(size, self._size - position), 0))

    def read_into(self, position: int, buffer: memoryview) -> int:
        wanted = max(min(len(buffer), self._size - position), 0)
        return self._inner.read_into(self._start + position, buffer[:wanted])

    def will_read(self, start: int, end: int) -> None:
        """Announce a range, if the stored file can fetch in advance."""
        if isinstance(self._inner, ReadsAhead):
            self._inner.will_read(self._start + start, self._start + min(end, self._size))

    def release(self) -> None:
        self._inner.release()


class CompressedFile(ReadOnlyFile):
    """A log in compressed chunks. The last chunk that was read is cached."""

    def __init__(self, path: str, inner: File, chunks: ChunkIndex, size: int) -> None:
        super().__init__(path, size)
        self._inner = inner
        self._chunks = chunks
        self._starts = chunks.stored_starts
        self._cached: tuple[int, bytes] = (-1, b"")

    def read(self, position: int, size: int) -> bytes:
        end = min(position + size, self._size)
        parts = []
        while position < end:
            chunk, inside = divmod(position, self._chunks.chunk_size)
            part = self._chunk(chunk)[inside : inside + end - position]
            if not part:
                break
            parts.append(part)
            position += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _chunk(self, number: int) -> bytes:
        if self._cached[0] != number:
            start, end = self._starts[number], self._starts[number + 1]
            stored = self._inner.read(start, end - start)
            try:
                data = unpack(stored, self._chunks.original_size(number))
            except WrongManifest as error:
                raise OSError(errno.EIO, f"chunk {number}: {error}", self.path) from None
            self._cached = number, data
        return self._cached[1]

    def will_read(self, start: int, end: int) -> None:
        """Announce a range, if the stored file can fetch in advance."""
        end = min(end, self._size)
        if isinstance(self._inner, ReadsAhead) and start < end:
            first, last = start // self._chunks.chunk_size, (end - 1) // self._chunks.chunk_size
            self._inner.will_read(self._starts[first], self._starts[last + 1])

    def release(self) -> None:
        self._cached = -1, b""
        self._inner.release()


def read_only_error(path: str) -> OSError:
    return OSError(errno.EROFS, "remote segments are read-only", path)
