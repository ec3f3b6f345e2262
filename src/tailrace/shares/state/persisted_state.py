"""PersistedState: position of a share group in a partition: the start offset, and the delivery states after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol
from uuid import UUID

from tailrace.model.ids import TopicId

UNINITIALIZED_OFFSET = -1  # nothing was read yet: share.auto.offset.reset decides
UNKNOWN_COUNT = -1
_FIRST = attrgetter("first_offset")


class SharePartitionKey(NamedTuple):
    """A group's view of a partition. Fetches that wait for its records wait under this key."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        """Return the text that Kafka hashes to find the partition of `__share_group_state`."""
        return f"{self.group_id}:{TopicId(UUID(bytes=self.topic_id))}:{self.partition}"


class StateBatch(NamedTuple):
    """Consecutive records with the same delivery count and state."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def _rank(self) -> tuple[int, int]:
        return (self.delivery_count, self.delivery_state)


@dataclass(frozen=True, slots=True)
class PersistedState:
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0


class ShareWrite(NamedTuple):
    """The change of a share partition's state that its leader writes. -1: the value stays as it is."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


def combine(known: Iterable[StateBatch], news: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Merge known and new states from the start offset on, in order and without overlaps.

    If both contain a record, the one with more deliveries is used, and with equal counts the higher state number.
    """
    batches = [_from(batch, start_offset) for batch in (*known, *news) if batch.last_offset >= start_offset]
    batches.sort(key=_FIRST)
    combined: list[StateBatch] = []
    if all(before.last_offset < batch.first_offset for before, batch in pairwise(batches)):  # the usual case
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


class _MessageBatch(Protocol):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def state_batches(batches: Sequence[_MessageBatch]) -> tuple[StateBatch, ...]:
    """Convert the state batches of any message."""
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in batches
    )
