"""OffsetIndex: offset → byte position in the segment's log file.

- Sparse: an entry about every `index.interval.bytes` of log, so a lookup ends with a short walk over batch headers.
- An entry is 8 bytes: the offset relative to the segment's base offset (int32), then the position (int32).
- Offsets are relative so that four bytes are enough; a segment is rolled before they overflow.
- The offset is the *last* of its batch, the position is the batch's start; both only grow.
- There is no checksum: a wrong index is not used (`index_trust.py`), and is rebuilt from the log.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from tailrace.log.disk.files import Files
from tailrace.log.segments.indexes import index_kernels
from tailrace.log.segments.indexes.index_file import CorruptIndex, IndexFile, floor_slot
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX

_ENTRY = Struct(">ii")
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


class OffsetPosition(NamedTuple):
    offset: Offset
    position: int


class OffsetIndex:
    __slots__ = ("_last_offset", "base_offset", "file", "is_trusted")

    def __init__(self, files: Files, path: str, base_offset: Offset, max_bytes: int) -> None:
        self.file = IndexFile(files, path, _ENTRY.size, max_bytes)
        self.base_offset = base_offset
        self.is_trusted = True  # until an entry turns out to be wrong
        self._last_offset: Offset | None = None  # of the last entry; None until it is read

    def distrust(self) -> None:
        """Stop using the entries, because one of them is wrong."""
        self.is_trusted = False

    @property
    def count(self) -> int:
        return self.file.count

    def entry(self, slot: int) -> OffsetPosition:
        relative, position = _ENTRY.unpack_from(self.file.data, slot * _ENTRY.size)
        return OffsetPosition(self.base_offset + relative, position)

    def last(self) -> OffsetPosition:
        count = self.file.count
        return self.entry(count - 1) if count else OffsetPosition(self.base_offset, 0)

    def fits(self, offset: Offset) -> bool:
        """Return True if the offset, relative to the base offset, fits into four bytes."""
        return 0 <= offset - self.base_offset <= INT_MAX

    def lookup(self, target: Offset, probes: list[int] | None = None) -> OffsetPosition:
        """Return the last entry at or below `target`, from which to walk. Return the segment's start if there
        is none."""
        data, relative = self.file.data, target - self.base_offset
        if not data:
            return _new_tuple(OffsetPosition, (self.base_offset, 0))
        if probes is None:
            slot = index_kernels.offset_index_slot(data, len(data) // 8, relative)
        else:
            slot = floor_slot(self.file.count, lambda n: int(_ENTRY.unpack_from(data, n * 8)[0]), relative, probes)
        if slot < 0 or not self.is_trusted:
            return _new_tuple(OffsetPosition, (self.base_offset, 0))
        relative, position = _ENTRY.unpack_from(data, slot * 8)
        return _new_tuple(OffsetPosition, (self.base_offset + relative, position))

    def upper_bound(self, position: int) -> OffsetPosition | None:
        """Return the first entry at or after a byte position: an offset that is certainly beyond it. None after the
        last entry."""
        slot = index_kernels.position_index_slot(self.file.data, self.file.count, position - 1) + 1
        # Kafka's search never compares the first entry for equality and takes the next one. A higher bound only lists
        # more aborted transactions, which does not matter to a reader. Doing the same gives the same responses.
        if slot == 0 and self.file.count and self.entry(0).position == position:
            slot = 1
        return self.entry(slot) if slot < self.file.count else None

    def end_position(self, end: Offset) -> int | None:
        """Return a byte position after all batches with an offset below `end`, or None after the last entries.

        The batch of the first entry at or after `end` may begin below it. Batches after that one do not.
        """
        slot = index_kernels.offset_index_slot(self.file.data, self.file.count, end - 1 - self.base_offset) + 2
        return self.entry(slot).position if slot < self.file.count else None

    def append(self, offset: Offset, position: int) -> None:
        last = self._last_offset
        if last is None:
            last = self.last().offset if self.file.count else self.base_offset - 1
        assert offset > last, f"{self.file.path}: {offset} is not above the last entry's {last}"
        self.file.append(_ENTRY.pack(offset - self.base_offset, position))
        self._last_offset = offset

    def truncate_to(self, offset: Offset) -> None:
        """Drop the entries at or after `offset`."""
        before = index_kernels.offset_index_slot(self.file.data, self.file.count, offset - 1 - self.base_offset)
        self.file.truncate(before + 1)
        self._last_offset = None

    def reset(self) -> None:
        """Drop every entry, because the index is about to be rebuilt."""
        self.file.reset()
        self._last_offset = None

    def check(self) -> None:
        """Raise CorruptIndex unless offsets and positions grow from entry to entry."""
        last_relative = last_position = -1
        for slot, (relative, position) in enumerate(_ENTRY.iter_unpack(self.file.data)):
            if relative <= last_relative or position <= last_position:
                raise CorruptIndex(
                    self.file.path,
                    f"entry {slot} ({self.base_offset + relative} → {position}) is not above the entry before",
                )
            last_relative, last_position = relative, position
