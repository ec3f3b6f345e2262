"""ProducerIds: ids for producers, one after the other, from blocks that the controller gives out.

Ids of a block that are unused when a broker stops are never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tailrace.model.ids import ProducerId


class ProducerIds:
    def __init__(self, allocate: Callable[[int], range]) -> None:
        """`allocate(now_ms)` gives the next block."""
        self._allocate = allocate
        self._block: Iterator[ProducerId] = iter(())

    def next(self, now_ms: int) -> ProducerId:
        for producer_id in self._block:
            return producer_id
        self._block = iter(self._allocate(now_ms))
        return next(self._block)
