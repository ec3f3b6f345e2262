"""MarkerWriter: writes transaction markers to partitions that are led here.

It serves WriteTxnMarkers requests and the transaction coordinator of this broker. A marker in `__consumer_offsets` goes
through the group coordinator, which commits or drops the pending offsets of the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from tailrace.broker.coordination.coordinator_topics import CONSUMER_OFFSETS
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.coordinator.coordinator_log import CoordinatorLog
from tailrace.coordinator.delayed_commit import DelayedCommit
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import ProducerId, TopicPartition
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker
from tailrace.waiting.purgatory import Purgatory

Answer: TypeAlias = Callable[[ErrorCode, int], None]  # (result, now_ms)

_SHARD_IS_ELSEWHERE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


@runtime_checkable
class EndsTransactions(Protocol):
    """A coordinator whose records may be part of transactions."""

    def end_transaction(
        self,
        partition: int,
        producer_id: ProducerId,
        producer_epoch: int,
        coordinator_epoch: int,
        is_committed: bool,
        answer: Callable[[None, int], None],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
        transaction_version: int = 0,
    ) -> None: ...


class Marker(NamedTuple):
    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


class MarkerWriter:
    def __init__(
        self, log: CoordinatorLog, coordinators: Coordinators, purgatory: Purgatory, *, write_timeout_ms: int
    ) -> None:
        self._log = log
        self._coordinators = coordinators
        self._purgatory = purgatory
        self._write_timeout_ms = write_timeout_ms

    def write(self, key: TopicPartition, marker: Marker, answer: Answer, now_ms: int) -> None:
        """Append a marker. `answer` is called once: when all in-sync replicas have the marker, or with an error."""
        groups: object = self._coordinators.get(CONSUMER_OFFSETS) if key.topic == CONSUMER_OFFSETS else None
        if groups is not None and isinstance(groups, EndsTransactions):
            groups.end_transaction(
                key.partition,
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.is_commit,
                lambda _, now_ms: answer(ErrorCode.NONE, now_ms),
                lambda error, now_ms: answer(_marker_error(error.code), now_ms),
                now_ms,
                marker.transaction_version,
            )
            return
        kind = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
        try:
            batch = build_end_marker(
                EndTransactionMarker(kind, marker.coordinator_epoch),
                timestamp=now_ms,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
            )
        except ValueError:  # invalid producer id or epoch; Kafka sends the same error
            answer(ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
            return
        try:
            end = self._log.append(key, batch, now_ms, marker.transaction_version)
        except KafkaError as error:
            answer(error.code, now_ms)
            return
        code = self._log.commit_error(key, end)
        if code is not None:
            answer(code, now_ms)
            return
        waiting = DelayedCommit(lambda: self._log.commit_error(key, end), answer, now_ms + self._write_timeout_ms)
        self._purgatory.watch(waiting, [key], now_ms)


def _marker_error(code: ErrorCode) -> ErrorCode:
    """Return the error for WriteTxnMarkers: the sender finds the new leader after NOT_LEADER_OR_FOLLOWER."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _SHARD_IS_ELSEWHERE else code
