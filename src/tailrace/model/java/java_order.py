"""The order in which java.util.HashMap lists its keys.

Apache Kafka writes producer snapshots in that order, and so do we. A map of long keys lists its buckets in turn, and
the keys of one bucket in the order they came in. It starts with 16 buckets and doubles them when more than three
quarters as many keys are in it.
"""

from __future__ import annotations

from collections.abc import Iterable

FIRST_CAPACITY = 16


def grown_capacity(capacity: int, count: int) -> int:
    """The number of buckets after the map has come to hold `count` keys."""
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def hash_order(keys: Iterable[int], capacity: int = FIRST_CAPACITY) -> list[int]:
    """Keys, given in the order they came in, as a map of that many buckets lists them."""
    mask = capacity - 1
    return sorted(keys, key=lambda key: _spread_hash(key) & mask)


def _spread_hash(key: int) -> int:
    code = (key ^ (key >> 32)) & 0xFFFFFFFF
    return code ^ (code >> 16)
