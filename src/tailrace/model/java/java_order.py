"""Iteration orders of Java's collections, on which Kafka's assignments and producer snapshots depend.

A HashMap lists its buckets in order, and the keys of one bucket in the order of insertion. It starts with 16 buckets
and doubles them when the number of keys exceeds three quarters of the number of buckets. Producer snapshots list the
keys of a map of long keys. Kafka's TimelineHashMap has the members of a group; it spreads hashes by a multiplication
and never shrinks. A PriorityQueue keeps a binary heap: the order of equal elements follows from how it sifts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

from tailrace.model.java.java_hash import java_hash

T = TypeVar("T")

FIRST_CAPACITY = 16
TIMELINE_CAPACITY_MIN = 2
_FIBONACCI = -7046029254386353131


def hash_map_capacity(count: int) -> int:
    """Return the number of buckets of `new HashMap(count)`."""
    return 1 if count <= 1 else 1 << (count - 1).bit_length()


def grown_capacity(capacity: int, count: int) -> int:
    """Return the number of buckets after the map has grown to `count` keys."""
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def hash_map_order(keys: Iterable[str], capacity: int = FIRST_CAPACITY) -> list[str]:
    """Return the keys, given in the order of insertion, in the order of a HashMap with that many buckets."""
    return in_hash_order(dict.fromkeys(keys), java_hash, capacity)


def in_hash_order(keys: Collection[T], code: Callable[[T], int], capacity: int = FIRST_CAPACITY) -> list[T]:
    """Like `hash_map_order`, for distinct keys with the hash codes `code(key)`."""
    mask = grown_capacity(capacity, len(keys)) - 1
    return sorted(keys, key=lambda key: _spread(code(key)) & mask)


def _spread(code: int) -> int:
    """Return the bits of a hash code by which a HashMap chooses a bucket."""
    code &= 0xFFFFFFFF
    return code ^ (code >> 16)


def long_hash_order(keys: Iterable[int], capacity: int = FIRST_CAPACITY) -> list[int]:
    """Return long keys, given in the order of insertion, in the order of a HashMap with that many buckets."""
    mask = capacity - 1
    return sorted(keys, key=lambda key: _spread(key ^ (key >> 32)) & mask)


def grown_timeline_capacity(capacity: int, count: int) -> int:
    """Return the number of slots of a TimelineHashMap that holds `count` keys."""
    while count * 0.75 > capacity:
        capacity *= 2
    return capacity


def timeline_order(keys: Iterable[str], capacity: int) -> list[str]:
    shift = 64 - (capacity.bit_length() - 1)
    return sorted(keys, key=lambda key: ((java_hash(key) * _FIBONACCI) & 0xFFFFFFFFFFFFFFFF) >> shift)


def text_order(text: str) -> bytes:
    """Return the key by which Java sorts strings: their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


class PriorityQueue(Generic[T]):
    """java.util.PriorityQueue: the least element first. The priority of an element must not change."""

    def __init__(self, priority: Callable[[T], float], items: Iterable[T] = ()) -> None:
        self._priority = priority
        self._heap: list[T] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: T) -> None:
        heap, priority = self._heap, self._priority
        heap.append(item)
        place = len(heap) - 1
        while place > 0:
            parent = (place - 1) // 2
            if priority(item) >= priority(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = item

    def poll(self) -> T | None:
        heap, priority = self._heap, self._priority
        if not heap:
            return None
        first = heap[0]
        last = heap.pop()
        count = len(heap)
        if not count:
            return first
        place = 0
        while place < count // 2:
            child = 2 * place + 1
            if child + 1 < count and priority(heap[child]) > priority(heap[child + 1]):
                child += 1
            if priority(last) <= priority(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first
