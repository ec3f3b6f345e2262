# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The binary search in the entries of an index.

See `records/kernels.py` for the rules of compiled modules.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer

COMPILED = not __file__.endswith(".py")


def _int32(data: Buffer, position: int) -> int:
    """Return a signed big-endian integer. The caller has checked that there are four bytes."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def offset_index_slot(data: Buffer, entries: int, relative_offset: int) -> int:
    """Return the last of `entries` 8-byte entries (int32 relative offset, int32 position) up to the offset, or -1."""
    return _floor_slot(data, entries, 8, 0, relative_offset)


def position_index_slot(data: Buffer, entries: int, file_position: int) -> int:
    """Like offset_index_slot, by the second half of the entries: return the last one up to the file position."""
    return _floor_slot(data, entries, 8, 4, file_position)


def time_index_slot(data: Buffer, entries: int, timestamp: int) -> int:
    """Return the last of `entries` 12-byte entries (int64 timestamp, int32 relative offset) up to the
    timestamp, or -1."""
    return _floor_slot(data, entries, 12, 0, timestamp)


def _floor_slot(view: Buffer, entries: int, size: int, inside: int, target: int) -> int:
    if entries * size > len(view):
        raise ValueError(f"{entries} entries do not fit {len(view)} bytes")
    low = -1
    high = entries
    while high - low > 1:
        middle = (low + high) >> 1
        at = middle * size + inside
        if (_int64(view, at) if size == 12 else _int32(view, at)) <= target:
            low = middle
        else:
            high = middle
    return low
