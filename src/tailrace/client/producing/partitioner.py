"""The partition of a key, as Kafka's default partitioner computes it.

The partition is murmur2 of the key's bytes with seed 0x9747b28c, with the sign bit cleared, modulo the number of
partitions. Records without a key may go to any partition.
"""

from __future__ import annotations

from typing import Final

from tailrace.records.batch import Buffer

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: Buffer) -> int:
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


def partition_of_key(key: Buffer, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions
