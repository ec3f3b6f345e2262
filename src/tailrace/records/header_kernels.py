# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The walk over the headers of batches that follow each other.

See `records/kernels.py` for the rules of compiled modules.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer, CorruptBatch

COMPILED = not __file__.endswith(".py")

BatchFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int, int]


def _add(a: int, b: int) -> int:
    """Return a + b with the overflow of Java's long."""
    last = 0x7FFFFFFFFFFFFFFF
    if b > 0 and a > last - b:
        return (a - last - 1) + (b - last - 1)
    if b < 0 and a < -1 - last - b:
        return (a + last + 1) + (b + last + 1)
    return a + b


def _int32(data: Buffer, position: int) -> int:
    """Return a signed big-endian integer. The caller has checked that there are four bytes."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _uint32(data: Buffer, position: int) -> int:
    return _int32(data, position) & 0xFFFFFFFF


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def find_batch(view: Buffer, start: int, end: int, target_offset: int) -> tuple[int, int, int, int]:
    """Return the first batch that ends at or after target_offset: (position, size, base offset, last offset).

    Batches of any format follow each other from `start`. A batch whose header is inside the range counts even if its
    records are not. Without such a batch the size is 0 and the position is where the walk ended: beyond `end`, or at an
    incomplete header. Raises CorruptBatch for an impossible length.
    """
    if start < 0 or end > len(view):
        raise ValueError(f"range {start}..{end} is not inside the {len(view)} bytes given")
    position = start
    while end - position >= 27:
        size = _int32(view, position + 8) + 12
        if size < 26:
            raise CorruptBatch(f"batch length {size - 12} is too small", position=position)
        base_offset = _int64(view, position)
        last_offset = _add(base_offset, _int32(view, position + 23)) if view[position + 16] >= 2 else base_offset
        if last_offset >= target_offset:
            return position, size, base_offset, last_offset
        position += size
    return position, 0, -1, -1


def scan_batches(view: Buffer, start: int, end: int) -> tuple[list[BatchFields], int, str | None]:
    """Return the headers of all whole batches between `start` and `end`. Checksums are not checked.

    Returns the headers, the position after the last, and the error there. The error is None if the bytes end, even
    inside a batch. A header is (position, size, base offset, last offset, leader epoch, magic, crc, attributes, base
    timestamp, max timestamp, producer id, producer epoch, base sequence, record count). Formats 0 and 1 have -1 for
    fields that they lack, and their one timestamp twice.
    """
    if start < 0 or end > len(view):
        raise ValueError(f"range {start}..{end} is not inside the {len(view)} bytes given")
    batches: list[BatchFields] = []
    position = start
    while end - position >= 17:
        size = _int32(view, position + 8) + 12
        magic = view[position + 16]
        if magic > 2:
            return batches, position, f"magic {(magic ^ 0x80) - 0x80} is unknown"
        if size < (61 if magic == 2 else 34 if magic == 1 else 26):
            return batches, position, f"batch length {size - 12} is too small for magic {magic}"
        if size > end - position:
            break
        base_offset = _int64(view, position)
        if magic == 2:
            batches.append(
                (
                    position,
                    size,
                    base_offset,
                    _add(base_offset, _int32(view, position + 23)),
                    _int32(view, position + 12),
                    2,
                    _uint32(view, position + 17),
                    ((view[position + 21] ^ 0x80) - 0x80) * 256 + view[position + 22],
                    _int64(view, position + 27),
                    _int64(view, position + 35),
                    _int64(view, position + 43),
                    ((view[position + 51] ^ 0x80) - 0x80) * 256 + view[position + 52],
                    _int32(view, position + 53),
                    _int32(view, position + 57),
                )
            )
        else:
            crc = _uint32(view, position + 12)
            time = _int64(view, position + 18) if magic == 1 else -1
            attributes = (view[position + 17] ^ 0x80) - 0x80
            batches.append(
                (position, size, base_offset, base_offset, -1, magic, crc, attributes, time, time, -1, -1, -1, -1)
            )
        position += size
    return batches, position, None
