# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The loops of recovery over batches: check them, and rebuild a segment's indexes.

Plain Python that Cython compiles in place, with its C types in scan_kernels.pxd. The rules of `records/kernels.py`
apply.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer
from tailrace.records.codecs.crc32c import crc32c

COMPILED = not __file__.endswith(".py")


def _int32(data: Buffer, position: int) -> int:
    """Return a signed big-endian integer. The caller has checked that there are four bytes."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def _append_int32(out: bytearray, value: int) -> None:
    out.append(value >> 24 & 0xFF)
    out.append(value >> 16 & 0xFF)
    out.append(value >> 8 & 0xFF)
    out.append(value & 0xFF)


def _smallest_size(magic: int) -> int:
    """Return the smallest size of a batch or message of a format, with its offset and length."""
    return 61 if magic == 2 else 34 if magic == 1 else 26


def whole_batches(view: Buffer, end: int) -> int:
    """Return how many of the first `end` bytes are whole batches of a known format, by their lengths alone."""
    if end > len(view):
        raise ValueError(f"{end} is past the {len(view)} bytes given")
    position = 0
    while end - position >= 26:
        size = _int32(view, position + 8) + 12
        magic = view[position + 16]
        if magic > 2 or size < _smallest_size(magic) or size > end - position:
            break
        position += size
    return position


class SegmentScan:
    """The summary of a segment's batches, added in order: the next offset, the largest timestamp, index entries.

    `take_plain` adds valid batches: format v2, a matching checksum, consecutive offsets, no newer leader epoch. It
    stops at any other batch. The caller checks that batch and adds it with `take`, or skips it.
    """

    def __init__(self, base_offset: int, end_offset: int, index_interval: int, gaps_end: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.end_offset = end_offset  # no offset may reach it
        self.leader_epoch = -1  # the latest known epoch
        self.largest_timestamp = -1
        self.largest_offset = base_offset  # the last offset of the first batch with the largest timestamp
        self.offset_entries = bytearray()
        self.time_entries = bytearray()
        self._index_interval = index_interval
        self._gaps_end = gaps_end  # offsets below it may have gaps
        self._unindexed = 0
        self._last_timestamp = -1

    def take_plain(self, data: memoryview, start: int, position: int, produced: list[memoryview]) -> int:
        """Add plain batches from data[start:], which is at `position` in the file. Return the position of the first
        other batch.

        `data` has whole batches. Those of producers with an id are added to `produced`.
        """
        view = data
        end = len(view)
        if start < 0 or start > end:
            raise ValueError(f"{start} is not inside the {end} bytes given")
        while end - start >= 61:
            size = _int32(view, start + 8) + 12
            if view[start + 16] != 2 or size < 61 or size > end - start or _int32(view, start + 12) > self.leader_epoch:
                break
            base_offset = _int64(view, start)
            delta = _int32(view, start + 23)
            if base_offset < self.next_offset or delta < 0 or base_offset >= self.end_offset - delta:
                break
            if base_offset != self.next_offset and base_offset >= self._gaps_end - delta:
                break
            crc = _int32(view, start + 17) & 0x7FFFFFFF
            if view[start + 17] & 0x80:
                crc = crc + 0x7FFFFFFF + 1
            if crc32c(data[start + 21 : start + size]) != crc:
                break
            if view[start + 43] < 0x80:
                produced.append(data[start : start + size])
            self.take(position + start, size, base_offset + delta, _int64(view, start + 35))
            start += size
        return start

    def take(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Add a batch at `position` in the file. Its offset fits into the segment."""
        if max_timestamp > self.largest_timestamp:
            self.largest_timestamp = max_timestamp
            self.largest_offset = last_offset
        if self._unindexed > self._index_interval:
            _append_int32(self.offset_entries, last_offset - self.base_offset)
            _append_int32(self.offset_entries, position)
            self.note_time()
            self._unindexed = 0
        self._unindexed += size
        self.next_offset = last_offset + 1

    def note_time(self) -> None:
        """Add a time index entry for the largest timestamp, unless the last entry has it."""
        if self.largest_timestamp > self._last_timestamp:
            self._last_timestamp = self.largest_timestamp
            _append_int32(self.time_entries, self.largest_timestamp >> 32)
            _append_int32(self.time_entries, self.largest_timestamp)
            _append_int32(self.time_entries, self.largest_offset - self.base_offset)
