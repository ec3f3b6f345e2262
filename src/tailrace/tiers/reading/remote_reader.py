"""RemoteReader: the interface by which a fetch reads from the remote store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.tiers.reading.remote_read import RemoteAsk
from tailrace.waiting.purgatory import DelayedOperation


class RemotePart(NamedTuple):
    """A partition of a fetch that has to be read from the remote store."""

    key: TopicPartition
    ask: RemoteAsk
    slot: int  # of its answer


class RemoteAnswer(NamedTuple):
    """The end of a remote read: records, or an error."""

    error: ErrorCode
    records: bytes = b""
    aborted: list[AbortedTransaction] | None = None


class RemoteWalk(NamedTuple):
    """How a read finds an offset in the remote store, for an explanation."""

    local_start: Offset  # the first offset of the local log
    leader_epoch: LeaderEpoch | None  # of the offset; None: before all epochs of the log
    segment_id: str | None  # None: the metadata has no readable segment with the offset
    start_offset: Offset = -1
    end_offset: Offset = -1
    size: int = 0
    index_position: int | None = None  # where the index lets the read begin; None: the index is not cached


# Takes the answers, None for reads that have not ended in time, and the time.
RemoteEnd: TypeAlias = Callable[[Sequence[tuple[RemotePart, RemoteAnswer | None]], int], None]


class RemoteReader(Protocol):
    """Reads from the remote store."""

    def is_throttled(self, now_ms: int) -> bool:
        """Return True if the quota of remote reads is exceeded."""

    def explain(self, key: TopicPartition, offset: Offset) -> RemoteWalk | None:
        """Return how a read finds an offset. Return None if the partition has no remote log here."""

    def begin(self, parts: Sequence[RemotePart], ended: RemoteEnd, now_ms: int) -> DelayedOperation:
        """Begin reads. Return the operation that waits for them, under the keys of the partitions."""
