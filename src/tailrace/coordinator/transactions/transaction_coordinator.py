"""TransactionCoordinator: passes requests to the shard of their transactional id, and retries.

    request ──► shard (decides) ──► record in `__transaction_state` ──► response
                                          └─ an end: markers ──► all written ──► COMPLETE_… record

`answer(result, now_ms)` is called once, now or when the record is committed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from tailrace.coordinator.key_partition import partition_of
from tailrace.coordinator.runtime import CoordinatorRuntime
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.transactions.ending import EndRequest, EndResult
from tailrace.coordinator.transactions.markers import RETRY_MS, Markers, TransactionEnd
from tailrace.coordinator.transactions.timeouts import TimeoutConfig, Timeouts
from tailrace.coordinator.transactions.transaction import Facts
from tailrace.coordinator.transactions.transaction_shard import (
    InitAnswer,
    ProducerIdAndEpoch,
    TransactionSettings,
    TransactionShard,
)
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, LeaderEpoch, ProducerId, TopicPartition

_log = logging.getLogger(__name__)

TOPIC = "__transaction_state"
MARKERS_AT_ONCE = 32  # markers that are written without a pause
R = TypeVar("R")
Answer: TypeAlias = Callable[[R, int], None]
# (makes a shard, loads a shard again) to the runtime of `__transaction_state`
MakeRuntime: TypeAlias = (
    "Callable[[Callable[[int], TransactionShard], Callable[[int, int], None]], CoordinatorRuntime[TransactionShard]]"
)


class TransactionConfig(NamedTuple):
    max_timeout_ms: int  # transaction.max.timeout.ms
    timeouts: TimeoutConfig


class EndAnswer(NamedTuple):
    error: ErrorCode
    ended: EndResult = EndResult()


def _none_elsewhere(_: Markers, __: int) -> None:
    """Send nothing: a standalone broker leads all partitions."""


class MarkerRoutes(NamedTuple):
    """The functions that write markers here, and send them to other brokers."""

    write: Callable[[TransactionEnd, TopicPartition, Answer[ErrorCode], int], None]  # at a partition led here
    send: Callable[[Markers, int], None] = _none_elsewhere  # all markers for other brokers


class ClusterView(NamedTuple):
    """Facts of the cluster, read when they are needed."""

    log_partitions: Callable[[], int]  # the number of partitions of `__transaction_state`
    log_epoch: Callable[[int], LeaderEpoch]  # the leader epoch of one of them
    server_version: Callable[[], int]  # the feature transaction.version
    leader_of: Callable[[TopicPartition], BrokerId | None]


class TransactionCoordinator:
    def __init__(
        self,
        config: TransactionConfig,
        make_runtime: MakeRuntime,
        *,
        broker_id: BrokerId,
        cluster: ClusterView,
        new_producer_id: Callable[[int], ProducerId],
        marker_routes: MarkerRoutes,
        now_ms: int,
    ) -> None:
        self._limited_log = LimitedLog(_log)
        self._config = config
        self._broker_id = broker_id
        self._log_partitions = cluster.log_partitions
        self._write_marker, self._send_markers = marker_routes
        self.markers = Markers(cluster.leader_of, self._markers_written, self._marker_written)
        settings = TransactionSettings(
            server_version=cluster.server_version,
            new_producer_id=new_producer_id,
            send=self._send,
        )
        self.runtime = make_runtime(
            lambda index: TransactionShard(index, cluster.log_epoch(index), settings), self.lead
        )
        self._unwritten: deque[tuple[TransactionEnd, TopicPartition]] = deque()  # markers to write here
        self._uncompleted: list[
            tuple[int, TransactionEnd]
        ] = []  # (retry at, end) of ends whose last record could not be written
        self._timeouts = Timeouts(self.runtime, config.timeouts, self._warn, now_ms)

    topic = TOPIC

    # Leadership

    def lead(self, partition: int, now_ms: int) -> None:
        self.markers.forget(partition)
        self.runtime.lead(partition, now_ms)

    def resign(self, partition: int, now_ms: int) -> None:
        self.runtime.resign(partition, now_ms)
        self.markers.forget(partition)

    # Requests

    def log_partition(self, transactional_id: str) -> int:
        return partition_of(transactional_id, self._log_partitions())

    def _ask(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard], StateChange[R]],
        answer: Answer[R],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
    ) -> None:
        if not transactional_id:
            refuse(KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty"), now_ms)
            return
        # The state of a shard is committed, so an operation that only reads does not wait.
        partition = self.log_partition(transactional_id)
        self.runtime.write(partition, operation, answer, refuse, now_ms, reads_wait=False)

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        answer: Answer[InitAnswer],
        now_ms: int,
    ) -> None:
        if transactional_id and not 0 < timeout_ms <= self._config.max_timeout_ms:
            answer(InitAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT), now_ms)
            return
        self._ask(
            transactional_id,
            lambda shard: shard.init_producer(transactional_id, timeout_ms, expected, now_ms),
            answer,
            lambda error, now_ms: answer(InitAnswer(error.code), now_ms),
            now_ms,
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_version: int,
        answer: Answer[ErrorCode],
        now_ms: int,
    ) -> None:
        self._ask(
            transactional_id,
            lambda shard: shard.add_partitions(transactional_id, producer, partitions, client_version, now_ms),
            answer,
            lambda error, now_ms: answer(error.code, now_ms),
            now_ms,
        )

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return NONE for partitions of the producer's open transaction, and an error for others."""
        try:
            if not transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            shard = self.runtime.shard(self.log_partition(transactional_id))
            return shard.verify_partitions(transactional_id, producer, partitions)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)

    def end(self, transactional_id: str, request: EndRequest, answer: Answer[EndAnswer], now_ms: int) -> None:
        self._ask(
            transactional_id,
            lambda shard: shard.end(transactional_id, request, now_ms),
            lambda ended, now_ms: answer(EndAnswer(ErrorCode.NONE, ended), now_ms),
            lambda error, now_ms: answer(EndAnswer(error.code), now_ms),
            now_ms,
        )

    def find(self, transactional_id: str) -> Facts:
        """Return the facts of a transaction. Raise KafkaError if it is unknown, or if the coordinator is elsewhere."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        found = self.runtime.shard(self.log_partition(transactional_id)).transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"transactional id {transactional_id} is unknown")
        return found.facts

    # Markers

    def _send(self, end: TransactionEnd, now_ms: int) -> None:
        self.markers.add(end, now_ms)
        self._write_here(now_ms, is_turn_over=lambda: True)

    def _write_here(self, now_ms: int, is_turn_over: Callable[[], bool]) -> None:
        """Write markers of partitions that are led here: some of them, and more until the turn is over."""
        for end, partitions in self.markers.take(self._broker_id):
            self._unwritten.extend((end, one) for one in partitions)
        written = 0
        while self._unwritten and (written < MARKERS_AT_ONCE or not is_turn_over()):
            end, one = self._unwritten.popleft()
            written += 1
            if end.is_dropped:
                continue
            result = partial(self.markers.result, end, one)
            write = partial(self._write_marker, end, one, result)
            if not self.runtime.failures.run("writing a marker", one, write, now_ms):
                result(ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)  # it is retried
        if self.markers.outgoing:
            self._send_markers(self.markers, now_ms)

    def _marker_written(self, end: TransactionEnd, partition: TopicPartition) -> None:
        shard = self._shard_of(end)
        if shard is not None:
            shard.marker_written(end, partition)

    def _shard_of(self, end: TransactionEnd) -> TransactionShard | None:
        try:
            return self.runtime.shard(end.log_partition)
        except KafkaError:
            return None

    def _warn(self, event: str, transactional_id: str, error: KafkaError, now_ms: int) -> None:
        self._limited_log.write(logging.WARNING, event, now_ms, event, transactional_id=transactional_id, error=error)

    def _markers_written(self, end: TransactionEnd, now_ms: int) -> None:
        def refuse(error: KafkaError, now_ms: int) -> None:
            if error.code is not ErrorCode.NOT_COORDINATOR and not end.is_dropped:
                self._warn(
                    "the completion of a transaction could not be written, and is retried",
                    end.transactional_id,
                    error,
                    now_ms,
                )
                self._uncompleted.append((now_ms + RETRY_MS, end))

        def complete(shard: TransactionShard) -> StateChange[None]:
            change = shard.markers_written(end)
            if change is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            return change

        self.runtime.write(end.log_partition, complete, _nothing, refuse, now_ms)

    # Time

    def tick(self, now_ms: int, is_turn_over: Callable[[], bool] = lambda: False) -> None:
        self.runtime.tick(now_ms, is_turn_over)
        self._timeouts.tick(now_ms, is_turn_over)
        self.markers.tick(now_ms)
        due = [end for due_ms, end in self._uncompleted if due_ms <= now_ms]
        self._uncompleted = [one for one in self._uncompleted if one[0] > now_ms]
        for end in due:
            self._markers_written(end, now_ms)
        self._write_here(now_ms, is_turn_over)

    def next_deadline_ms(self) -> int:
        if self._unwritten:
            return 0
        deadline_ms = self._timeouts.next_deadline_ms()
        for other_ms in (self.runtime.next_deadline_ms(), self.markers.next_deadline_ms()):
            if other_ms is not None:
                deadline_ms = min(deadline_ms, other_ms)
        for due_ms, _ in self._uncompleted:
            deadline_ms = min(deadline_ms, due_ms)
        return deadline_ms


def _nothing(_: None, __: int) -> None:
    """Ignore the result of the coordinator's own work."""
