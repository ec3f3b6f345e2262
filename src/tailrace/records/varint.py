"""Zigzag varints, the integers inside a v2 record.

A signed value is folded so that small magnitudes of either sign become small (0, -1, 1, -2 → 0, 1, 2, 3), then cut
into groups of seven bits, lowest first, with the top bit of a byte set when more follow: at most 5 bytes for an
int32, 10 for an int64. Bits past the width of the type are dropped, as Java's shifts drop them. This module is for
single values; loops over records have the same arithmetic inlined in kernels.py.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer, CorruptBatch

MAX_VARINT_SIZE = 5
MAX_VARLONG_SIZE = 10


def varint_size(value: int) -> int:
    """How many bytes a signed value takes (the same for varints and varlongs)."""
    folded = value << 1 if value >= 0 else (-value << 1) - 1
    return max(1, (folded.bit_length() + 6) // 7)


def write_varint(out: bytearray, value: int) -> None:
    """Append a signed int32 or int64."""
    folded = value << 1 if value >= 0 else (-value << 1) - 1
    while folded > 0x7F:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The int32 at `position`, and the position after it."""
    return _read(data, position, MAX_VARINT_SIZE, 0xFFFF_FFFF)


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """The int64 at `position`, and the position after it."""
    return _read(data, position, MAX_VARLONG_SIZE, 0xFFFF_FFFF_FFFF_FFFF)


def _read(data: Buffer, position: int, max_size: int, mask: int) -> tuple[int, int]:
    folded = 0
    for index in range(max_size):
        if position + index >= len(data):
            raise CorruptBatch(f"varint at byte {position} runs past the end")
        byte = data[position + index]
        folded |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            folded &= mask
            return (folded >> 1) ^ -(folded & 1), position + index + 1
    raise CorruptBatch(f"varint at byte {position} is longer than {max_size} bytes")
