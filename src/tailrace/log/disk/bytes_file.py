"""BytesFile: bytes in memory that are read like a file."""

from __future__ import annotations

import io

from tailrace.records.batch import Buffer


class BytesFile:
    """A read-only file. It has no descriptor."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]

    def read_into(self, position: int, buffer: memoryview) -> int:
        found = self._data[position : position + len(buffer)]
        buffer[: len(found)] = found
        return len(found)

    def map(self) -> Buffer:
        return self._data

    def write(self, position: int, data: Buffer) -> None:
        raise self._refused()

    def allocate(self, size: int) -> None:
        raise self._refused()

    def truncate(self, size: int) -> None:
        raise self._refused()

    def fileno(self) -> int:
        raise self._refused()

    def sync(self) -> None:
        """Do nothing: nothing is written."""

    def release(self) -> None:
        """Do nothing: there is no descriptor."""

    def close(self) -> None:
        """Do nothing: there is no descriptor."""

    def _refused(self) -> OSError:
        return io.UnsupportedOperation(f"{self.path} is in memory and can only be read")
