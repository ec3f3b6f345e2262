"""TimeIndex: timestamp → offset.

- Sparse, written together with the offset index, and once more when the segment is sealed or closed.
- An entry is 12 bytes: a timestamp (int64), then an offset relative to the segment's base offset (int32).
- An entry means that every record up to that offset has at most this timestamp. Timestamps and offsets therefore only
  grow. A lookup by time starts at the last entry *below* the target, although records may be out of order.
- The offset is the last of the batch in which the largest timestamp was first seen.
- Like the offset index it has no checksum and is rebuilt from the log.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from tailrace.log.disk.files import Files
from tailrace.log.segments.indexes import index_kernels
from tailrace.log.segments.indexes.index_file import CorruptIndex, IndexFile, floor_slot
from tailrace.model.ids import NO_TIMESTAMP, Offset
from tailrace.model.topic_config import INT_MAX

_ENTRY = Struct(">qi")


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: Offset


class TimeIndex:
    __slots__ = ("_last", "base_offset", "file")

    def __init__(self, files: Files, path: str, base_offset: Offset, max_bytes: int) -> None:
        self.file = IndexFile(files, path, _ENTRY.size, max_bytes)
        self.base_offset = base_offset
        self._last: TimestampOffset | None = None  # the last entry; None until it is read

    @property
    def count(self) -> int:
        return self.file.count

    def entry(self, slot: int) -> TimestampOffset:
        timestamp, relative = _ENTRY.unpack_from(self.file.data, slot * _ENTRY.size)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def last(self) -> TimestampOffset:
        if self._last is None:
            count = self.file.count
            self._last = self.entry(count - 1) if count else TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self._last

    def lookup(self, target: int, probes: list[int] | None = None) -> TimestampOffset:
        """Return the last entry at or below the target timestamp. No record before its offset is later than
        the entry."""
        data = self.file.data
        if probes is None:
            slot = index_kernels.time_index_slot(data, len(data) // _ENTRY.size, target)
        else:
            slot = floor_slot(self.file.count, lambda n: int(_ENTRY.unpack_from(data, n * 12)[0]), target, probes)
        return self.entry(slot) if slot >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def append(self, timestamp: int, offset: Offset) -> None:
        """Add an entry, unless its timestamp is at most that of the last entry, which then already covers it.

        In a damaged log an offset can be too large for an entry. It gets none.
        """
        last = self._last or self.last()
        if timestamp > last.timestamp and offset - self.base_offset <= INT_MAX:
            assert offset >= last.offset, f"{self.file.path}: {offset} is below {last.offset}"
            self.file.append(_ENTRY.pack(timestamp, offset - self.base_offset))
            self._last = TimestampOffset(timestamp, offset)

    def truncate_to(self, offset: Offset) -> None:
        """Drop the entries at or after `offset`."""
        data, unpack = self.file.data, _ENTRY.unpack_from
        self.file.truncate(
            floor_slot(self.file.count, lambda n: int(unpack(data, n * 12)[1]), offset - 1 - self.base_offset) + 1
        )
        self._last = None

    def reset(self) -> None:
        """Drop every entry, because the index is about to be rebuilt."""
        self.file.reset()
        self._last = None

    def check(self) -> None:
        """Raise CorruptIndex unless timestamps grow and offsets do not shrink from entry to entry."""
        last_timestamp, last_relative = NO_TIMESTAMP, -1
        for slot, (timestamp, relative) in enumerate(_ENTRY.iter_unpack(self.file.data)):
            if timestamp <= last_timestamp or relative < last_relative:
                raise CorruptIndex(
                    self.file.path,
                    f"entry {slot} ({timestamp} → {self.base_offset + relative}) is not above the entry before",
                )
            last_timestamp, last_relative = timestamp, relative
