"""TransactionIndex: the aborted transactions of a segment.

- An entry is 34 bytes: version (int16, 0), producer id, first offset, last offset, last stable offset (int64 each).
- It is written when the abort marker is appended, to the segment with the marker. Entries are therefore ordered by
  their last offset. The transaction's records may be in earlier segments.
- The last stable offset of an entry is its value once this abort is applied. A search for the aborted transactions
  below an upper bound ends at the first entry whose last stable offset reaches that bound, because every later abort is
  beyond it.
- The file exists only if there is an entry. It is small, and kept in memory once read.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from tailrace.log.disk.files import Files, write_atomically
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.model.ids import Offset, ProducerId

_ENTRY = Struct(">hqqqq")
_VERSION = 0
assert _ENTRY.size == 34


class AbortedTransaction(NamedTuple):
    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


def _encode(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


class TransactionIndex:
    __slots__ = ("_entries", "_files", "_is_rebuilt", "_written", "base_offset", "path")

    def __init__(self, files: Files, path: str, base_offset: Offset) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = None
        self._written = 0  # how many of the entries the file has
        self._is_rebuilt = False

    def moved_to(self, path: str) -> None:
        """Record that the file was renamed."""
        self.path = path

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            self._entries = self._load()
            self._written = len(self._entries)
        return self._entries

    def _load(self) -> list[AbortedTransaction]:
        if not self._files.exists(self.path):
            return []
        data = self._files.read(self.path)
        entries = []
        # An incomplete last entry was never valid. The next append overwrites it.
        for position in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
            version, *fields = _ENTRY.unpack_from(data, position)
            if version != _VERSION:
                raise CorruptIndex(self.path, f"unknown entry version {version} at position {position}")
            entry = AbortedTransaction(*fields)
            if entry.last_offset < self.base_offset:
                raise CorruptIndex(self.path, f"{entry} at position {position} ends before base {self.base_offset}")
            entries.append(entry)
        return entries

    def append(self, transaction: AbortedTransaction) -> None:
        entries = self.entries
        assert not entries or entries[-1].last_offset < transaction.last_offset, (
            f"{self.path}: {transaction} does not follow the last entry"
        )
        entries.append(transaction)
        if not self._is_rebuilt:
            self.write_out()

    def write_out(self) -> None:
        """Write the entries that the file lacks: the one just appended, and those of failed writes."""
        entries = self._entries
        if entries is None or self._written == len(entries):
            return
        file = self._files.open(self.path, create=True)
        try:
            file.write(self._written * _ENTRY.size, _encode(entries[self._written :]))
        finally:
            file.close()
        self._written = len(entries)

    def truncate_to(self, offset: Offset) -> None:
        """Drop the transactions that end at or after `offset`."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if len(kept) < len(self.entries):
            self._cut(min(len(kept), self._written))
            self._entries = kept

    def reset(self) -> None:
        """Drop everything without reading the file. `rewrite` writes the entries that are appended from here on."""
        self._entries = []
        self._is_rebuilt = True

    def rewrite(self) -> None:
        """Replace the file as a whole with the entries. Without entries an existing file becomes empty."""
        if self.entries or (self._files.exists(self.path) and self._files.size(self.path)):
            write_atomically(self._files, self.path, _encode(self.entries))
        self._written = len(self.entries)
        self._is_rebuilt = False

    def _cut(self, count: int) -> None:
        if not count and not self._files.exists(self.path):
            return  # no write has succeeded
        file = self._files.open(self.path)
        try:
            file.truncate(count * _ENTRY.size)
        finally:
            file.close()
        self._written = count

    def collect(self, start: Offset, upper_bound: Offset) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions that overlap [start, upper_bound), and True if later segments can
        have none."""
        found = []
        for entry in self.entries:
            if entry.last_offset >= start and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def sync(self) -> None:
        if self._entries:
            self.write_out()
            file = self._files.open(self.path)
            try:
                file.sync()
            finally:
                file.close()
