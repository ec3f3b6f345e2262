"""IndexFile: fixed-width big-endian entries in ascending order, and the searches over them.

It is the common part of both sparse indexes. Three facts shape it:

- An index is only a hint. It is rebuilt from the log after an unclean stop, so entries are written when the segment is
  flushed or sealed and are not synced one by one.
- A sealed segment's index is mapped on first use, so opening a log reads no index.
- Apache Kafka preallocates the active segment's index with zeros and trims it on a clean stop. Zeros at the end are
  therefore padding, not entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tailrace.log.disk.files import Files, write_atomically
from tailrace.records.batch import Buffer

INDEX_BYTES_MAX: Final = 2**31 - 1  # of segment.index.bytes


class CorruptIndex(Exception):
    """An invalid index file. It is rebuilt from the log."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class IndexFile:
    __slots__ = ("_clean", "_data", "_disk_size", "_files", "entry_size", "max_entries", "path")

    def __init__(self, files: Files, path: str, entry_size: int, max_bytes: int) -> None:
        self._files = files
        self.path = path
        self.entry_size = entry_size
        self.max_entries = max_bytes // entry_size
        self._data: Buffer | None = None  # None: not read since it was opened or written
        self._disk_size = 0  # the file's size; -1 if there is no file
        self._clean = 0  # how many leading bytes of the data the file already has

    @property
    def data(self) -> Buffer:
        """The bytes of the entries: mapped from the file, or in memory once an entry was appended."""
        if self._data is None:
            self._data = self._load()
        return self._data

    def _load(self) -> Buffer:
        if not self._files.exists(self.path):
            self._disk_size, self._clean = -1, 0
            return bytearray()
        file = self._files.open(self.path, read_only=True)
        try:
            size = file.size()
            if size > INDEX_BYTES_MAX:
                raise CorruptIndex(
                    self.path, f"an index of {size:,} bytes; segment.index.bytes allows {INDEX_BYTES_MAX:,}"
                )
            mapped = file.map()
        finally:
            file.close()
        if len(mapped) % self.entry_size:
            raise CorruptIndex(self.path, f"{len(mapped)} bytes are not a multiple of the entry size {self.entry_size}")
        data = mapped[: self._used_bytes(mapped)]
        self._disk_size, self._clean = len(mapped), len(data)
        return data

    def _used_bytes(self, data: Buffer) -> int:
        """Return the size without the zeros at the end, found by bisection, because every entry after the last one is
        zero."""
        size = self.entry_size
        if len(data) == size:
            return size  # an entry, not padding: preallocated files are larger, and a record may be from 1970
        low, high = 0, len(data) // size
        while low < high:
            middle = (low + high) // 2
            if any(data[middle * size : (middle + 1) * size]):
                low = middle + 1
            else:
                high = middle
        return low * size

    @property
    def count(self) -> int:
        return len(self.data) // self.entry_size

    def moved_to(self, path: str) -> None:
        """Record that the file was renamed."""
        self.path = path

    def append(self, entry: bytes) -> None:
        data = self._data
        if not isinstance(data, bytearray):
            data = self._data = bytearray(self.data)
        data += entry

    def truncate(self, count: int) -> None:
        size = count * self.entry_size
        self._data = bytearray(self.data[:size])
        self._clean = min(self._clean, size)

    def reset(self) -> None:
        """Drop everything without reading the file, which is about to be rebuilt."""
        self._data = bytearray()
        self._clean = 0
        self._disk_size = self._files.size(self.path) if self._files.exists(self.path) else -1

    def write_out(self, *, sync: bool = False) -> None:
        """Write the entries to the file, with nothing after them."""
        data = self._data
        if data is None or (self._clean == len(data) == self._disk_size):
            return
        file = self._files.open(self.path, create=True)
        try:
            if self._clean < len(data):
                file.write(self._clean, memoryview(data)[self._clean :])
            if self._disk_size > len(data):
                file.truncate(len(data))
            if sync:
                file.sync()
        finally:
            file.close()
        self._clean = self._disk_size = len(data)

    def rewrite(self) -> None:
        """Replace the file as a whole with the entries."""
        write_atomically(self._files, self.path, self.data)
        self._clean = self._disk_size = len(self.data)

    def sync(self) -> None:
        self.write_out()
        file = self._files.open(self.path)
        try:
            file.sync()
        finally:
            file.close()

    def release(self) -> None:
        """Drop the bytes of an index that is written. The next use maps the file again."""
        if self._data is not None and self._clean == len(self._data) == self._disk_size:
            self._data = None


def floor_slot(count: int, key_of: Callable[[int], int], target: int, probes: list[int] | None = None) -> int:
    """Return the last slot whose key is at most `target`, or -1 if there is none. `probes` collects the inspected
    slots."""
    low, high = 0, count - 1
    while low <= high:
        middle = (low + high) // 2
        if probes is not None:
            probes.append(middle)
        if key_of(middle) <= target:
            low = middle + 1
        else:
            high = middle - 1
    return high
