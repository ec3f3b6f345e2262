"""ShareState: how far a share group has come in a partition: where it begins, and what became of records after that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol

UNINITIALIZED_OFFSET = -1  # nobody has read yet: the group begins where share.auto.offset.reset says
UNKNOWN_COUNT = -1
_FIRST = attrgetter("first_offset")


class StateBatch(NamedTuple):
    """Consecutive records that share a fate: how often they were delivered, and what came of it."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def _rank(self) -> tuple[int, int]:
        return (self.delivery_count, self.delivery_state)


@dataclass(frozen=True, slots=True)
class ShareState:
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0


def combine(known: Iterable[StateBatch], news: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """What is known with what is new, from the start offset on, in order and without overlaps. Of two that speak of the
    same record, the one with more deliveries counts, and of those the state further on."""
    batches = [_from(batch, start_offset) for batch in (*known, *news) if batch.last_offset >= start_offset]
    batches.sort(key=_FIRST)
    combined: list[StateBatch] = []
    if all(before.last_offset < batch.first_offset for before, batch in pairwise(batches)):  # as they come mostly
        for batch in batches:
            _append(combined, batch)
        return tuple(combined)
    edges = sorted({edge for batch in batches for edge in (batch.first_offset, batch.last_offset + 1)})
    open_: list[tuple[int, int, StateBatch]] = []  # highest rank first
    position = 0
    for begin, end in pairwise(edges):
        while position < len(batches) and batches[position].first_offset <= begin:
            batch = batches[position]
            heappush(open_, (-batch.delivery_count, -batch.delivery_state, batch))
            position += 1
        while open_ and open_[0][2].last_offset < begin:
            heappop(open_)
        if open_:
            _append(combined, open_[0][2]._replace(first_offset=begin, last_offset=end - 1))
    return tuple(combined)


def _from(batch: StateBatch, start_offset: int) -> StateBatch:
    return batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)


def _append(batches: list[StateBatch], batch: StateBatch) -> None:
    if batches and batches[-1].last_offset + 1 == batch.first_offset and batches[-1]._rank == batch._rank:
        batches[-1] = batches[-1]._replace(last_offset=batch.last_offset)
    else:
        batches.append(batch)


class _ToldBatch(Protocol):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def state_batches(told: Sequence[_ToldBatch]) -> tuple[StateBatch, ...]:
    """From any message that has them."""
    return tuple(StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in told)
