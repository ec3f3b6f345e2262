"""Markers: writes the end of a transaction to every partition that was part of it.

When an end is decided (PREPARE_… is in the log), a marker is written at the leader of each partition. When all are
written, the coordinator completes the transaction. `outgoing` contains the markers to send, by leader:

    add(end) ──► outgoing[leader] ──take(leader)──► WriteTxnMarkers, there or here ──result(end, partition, code)──┐
       ▲                                                                                                           │
       └── retried after RETRY_MS: no leader, not enough replicas, a disk that failed, a timeout ◄─────────────────┤
                                                                                    all written: `on_written` ◄────┘

A partition that no longer exists needs no marker. If a marker is fenced (by a newer coordinator or producer epoch),
another coordinator ends this transaction. Then it is dropped here, and the coordinator that loads the log finds it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tailrace.coordinator.transactions.transaction import Facts
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, ProducerId, TopicPartition

_log = logging.getLogger(__name__)

RETRY_MS = 100
NO_LEADER = -1

_RETRIED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


@dataclass(slots=True, eq=False)
class TransactionEnd:
    """The end of a transaction on its way to its partitions."""

    log_partition: int  # of `__transaction_state`, where the transaction is
    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int
    after: Facts  # the facts of the transaction once all markers are written
    remaining: set[TopicPartition]
    is_dropped: bool = False


class Markers:
    def __init__(
        self,
        leader_of: Callable[[TopicPartition], BrokerId | None],
        on_written: Callable[[TransactionEnd, int], None],
        on_partition: Callable[[TransactionEnd, TopicPartition], None],
    ) -> None:
        """`leader_of` returns NO_LEADER for a partition without a leader, and None for a missing partition.
        `on_partition` is called for each partition whose marker is written or no longer needed. `on_written` is called
        after the last one."""
        self._leader_of = leader_of
        self._on_written = on_written
        self._on_partition = on_partition
        self._ends: dict[str, TransactionEnd] = {}
        self.outgoing: dict[BrokerId, list[tuple[TransactionEnd, list[TopicPartition]]]] = {}
        self._retries: list[tuple[int, TransactionEnd, list[TopicPartition]]] = []

    def __len__(self) -> int:
        """Return the number of transactions with unwritten markers."""
        return len(self._ends)

    def add(self, end: TransactionEnd, now_ms: int) -> None:
        self._ends[end.transactional_id] = end
        self._route(end, sorted(end.remaining), now_ms)
        self._check_written(end, now_ms)

    def _route(self, end: TransactionEnd, partitions: list[TopicPartition], now_ms: int) -> None:
        by_leader: dict[BrokerId, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._leader_of(partition)
            if leader is None:
                _log.info("%s no longer exists, so it needs no marker of %s", partition, end.transactional_id)
                self._note_done(end, partition)
            else:
                by_leader.setdefault(leader, []).append(partition)
        for leader, led in by_leader.items():
            if leader == NO_LEADER:
                self._retries.append((now_ms + RETRY_MS, end, led))
            else:
                self.outgoing.setdefault(leader, []).append((end, led))

    def _note_done(self, end: TransactionEnd, partition: TopicPartition) -> None:
        end.remaining.discard(partition)
        self._on_partition(end, partition)

    def _check_written(self, end: TransactionEnd, now_ms: int) -> None:
        if not end.remaining and not end.is_dropped and self._ends.get(end.transactional_id) is end:
            del self._ends[end.transactional_id]
            self._on_written(end, now_ms)

    def take(self, leader: BrokerId) -> list[tuple[TransactionEnd, list[TopicPartition]]]:
        """Take the markers to write at a leader. The caller reports a `result` for each partition."""
        return [(end, led) for end, led in self.outgoing.pop(leader, ()) if not end.is_dropped]

    def result(self, end: TransactionEnd, partition: TopicPartition, code: ErrorCode, now_ms: int) -> None:
        """Note the result of one marker."""
        if end.is_dropped:
            return
        if code is ErrorCode.NONE:
            self._note_done(end, partition)
            self._check_written(end, now_ms)
        elif code in _FENCED:
            _log.warning("%s refused the marker of transactional id %s: %s", partition, end.transactional_id, code.name)
            self._drop_end(end)
        else:
            level = logging.INFO if code in _RETRIED else logging.ERROR
            _log.log(level, "marker of %s in %s will be retried: %s", end.transactional_id, partition, code.name)
            self._retries.append((now_ms + RETRY_MS, end, [partition]))

    def _drop_end(self, end: TransactionEnd) -> None:
        end.is_dropped = True
        if self._ends.get(end.transactional_id) is end:
            del self._ends[end.transactional_id]

    def forget(self, log_partition: int) -> None:
        """Drop the transactions of a log partition that another coordinator has now."""
        for end in [one for one in self._ends.values() if one.log_partition == log_partition]:
            self._drop_end(end)

    # Time

    def next_deadline_ms(self) -> int | None:
        return min([due_ms for due_ms, _, _ in self._retries], default=None) if self._retries else None

    def tick(self, now_ms: int) -> None:
        if not self._retries:
            return
        due = [one for one in self._retries if one[0] <= now_ms]
        self._retries = [one for one in self._retries if one[0] > now_ms]
        for _, end, partitions in due:
            if not end.is_dropped:
                self._route(end, partitions, now_ms)
                self._check_written(end, now_ms)
