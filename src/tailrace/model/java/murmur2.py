"""murmur2: the hash by which clients choose a partition for a key, and tiered storage one for its metadata."""

from __future__ import annotations

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """Return the 32-bit hash as an unsigned number."""
    length = len(data)
    h = _SEED ^ length
    tail = length & ~3
    for position in range(0, tail, 4):
        k = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        h = h * _M & _MASK ^ (k ^ k >> 24) * _M & _MASK
    if tail < length:
        h = (h ^ int.from_bytes(data[tail:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
