"""CoordinatorRuntime: the shards of one coordinator, one per partition of its topic that is led here.

    lead ──► LOADING ──(replayed to the end)──► ACTIVE ──resign──► gone
                │ damage, or no leader any more
                ▼
              FAILED: NOT_COORDINATOR, until the partition is led anew

    write   an operation yields a StateChange: appended as one batch, replayed, answered once it is committed
    read    answered once everything written before it is committed
    tick    loading goes on, and timers that are due yield their StateChanges

On one node what is appended is committed. With followers an answer waits in the purgatory for the high watermark; if
leadership goes first, whoever waits is told NOT_COORDINATOR. Errors of the append are told as Kafka's coordinators tell
them (`coordinator_error`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from tailrace.coordinator.change_batches import build_batches
from tailrace.coordinator.coordinator_log import CoordinatorLog
from tailrace.coordinator.delayed_commit import DelayedCommit
from tailrace.coordinator.loading import Loading, QuickReplay
from tailrace.coordinator.shard import CoordinatorRecord, CoordinatorShard, PackedRecords, StateChange
from tailrace.coordinator.timers import Alarm, Due, Timers
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.log_fields import fields
from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage
from tailrace.protocol.errors import ProtocolError
from tailrace.purgatory import Purgatory
from tailrace.records.batch import Codec, CorruptBatch
from tailrace.records.control import ControlType, EndTransactionMarker, build_end_marker

_log = logging.getLogger(__name__)

S = TypeVar("S", bound=CoordinatorShard)
R = TypeVar("R")
Answer: TypeAlias = Callable[[R, int], None]  # (response, now_ms)
Refuse: TypeAlias = Callable[[KafkaError, int], None]  # (why not, now_ms)

LOAD_BYTES = 1 << 17  # replayed in one go: some ten milliseconds
RETRY_MS = 500  # a timer whose records could not be written is tried again

_TOLD_AS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """What a client of a coordinator is told when its log answers with this."""
    return _TOLD_AS.get(code, code)


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class _Place(Generic[S]):
    """A partition that is led here, and its shard."""

    __slots__ = ("began_ms", "key", "loading", "shard", "state", "timers", "written")

    def __init__(self, key: TopicPartition, shard: S, timers: Timers, now_ms: int) -> None:
        self.key = key
        self.shard = shard
        self.timers = timers
        self.state = ShardState.LOADING
        self.loading: Loading | None = None
        self.written: Offset = 0  # the log end after the last append of ours
        self.began_ms = now_ms


class CoordinatorRuntime(Generic[S]):
    def __init__(
        self,
        topic: str,
        log: CoordinatorLog,
        purgatory: Purgatory,
        make_shard: Callable[[int, Timers], S],
        *,
        write_timeout_ms: int,
        codec: Codec = Codec.NONE,
        quick_replay: Callable[[S], QuickReplay] | None = None,
    ) -> None:
        """`make_shard(partition, timers)` makes an empty shard; its timers live as long as it does. `quick_replay` is a
        shorter way to load what comes most."""
        self._quick_replay = quick_replay
        self.topic = topic
        self._log = log
        self._purgatory = purgatory
        self._make_shard = make_shard
        self._write_timeout_ms = write_timeout_ms
        self._codec = codec
        self._places: dict[int, _Place[S]] = {}
        self._loading: dict[int, None] = {}
        self._load_ms = 0  # when loading resumes; later than now only while descriptors or memory are short
        self._alarm = Alarm()  # of all shards: it is asked before every wait of the loop

    # Leadership

    def lead(self, partition: int, now_ms: int) -> None:
        """The partition is led here from now on, in a new epoch: its state is loaded."""
        self.resign(partition, now_ms)
        timers = Timers(self._alarm)
        place = _Place(TopicPartition(self.topic, partition), self._make_shard(partition, timers), timers, now_ms)
        self._places[partition] = place
        try:
            quick = None if self._quick_replay is None else self._quick_replay(place.shard)
            place.loading = Loading(self._log, place.key, place.shard, quick)
            self._loading[partition] = None
            if place.loading.is_done:
                self._finish_loading(place, now_ms)
        except KafkaError as error:
            self._fail(place, error, now_ms)

    def resign(self, partition: int, now_ms: int) -> None:
        """The partition is not led here any more, or not in that epoch."""
        place = self._places.pop(partition, None)
        self._loading.pop(partition, None)
        if place is not None:
            self._unload(place, now_ms)

    def _unload(self, place: _Place[S], now_ms: int) -> None:
        place.timers.clear()
        place.loading = None
        place.shard.unloaded(now_ms)
        self._purgatory.check(place.key, now_ms)

    def _fail(self, place: _Place[S], error: Exception, now_ms: int) -> None:
        _log.error("%s cannot be loaded, its coordinator is not available: %s", place.key, error)
        self._loading.pop(place.key.partition, None)
        place.state = ShardState.FAILED
        self._unload(place, now_ms)

    def _finish_loading(self, place: _Place[S], now_ms: int) -> None:
        loading = place.loading
        assert loading is not None
        place.loading = None
        del self._loading[place.key.partition]
        place.state = ShardState.ACTIVE
        place.written = self._log.bounds(place.key)[1]
        place.shard.loaded(now_ms)
        if loading.records:
            _log.info(
                "coordinator loaded",
                extra=fields(
                    partition=str(place.key),
                    records=loading.records,
                    bytes=loading.bytes,
                    took_ms=now_ms - place.began_ms,
                ),
            )

    # Who is here

    def active(self) -> Iterator[S]:
        """The shards that are loaded."""
        for place in tuple(self._places.values()):
            if place.state is ShardState.ACTIVE:
                yield place.shard

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def partitions(self) -> list[int]:
        """The partitions led here."""
        return list(self._places)

    def shard(self, partition: int) -> S:
        """The shard, if it can be asked; a KafkaError otherwise."""
        return self._active(partition).shard

    def _active(self, partition: int) -> _Place[S]:
        place = self._places.get(partition)
        if place is not None:
            if place.state is ShardState.ACTIVE:
                return place
            if place.state is ShardState.LOADING:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{place.key} is being loaded")
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{partition} is not coordinated here")

    # Requests

    def write(
        self,
        partition: int,
        operation: Callable[[S], StateChange[R]],
        answer: Answer[R],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        """Carry out what an operation decides; `answer` or `refuse` is called once, now or later."""
        try:
            place = self._active(partition)
            change = operation(place.shard)
        except KafkaError as error:
            refuse(error, now_ms)
            return
        self._carry_out(place, change, answer, refuse, now_ms)

    def read(self, partition: int, operation: Callable[[S], R], answer: Answer[R], refuse: Refuse, now_ms: int) -> None:
        """Answer from the state, once everything in it is committed."""
        self.write(partition, lambda shard: StateChange((), operation(shard)), answer, refuse, now_ms)

    def end_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        is_committed: bool,
        answer: Answer[None],
        refuse: Refuse,
        now_ms: int,
        transaction_version: int = 0,
    ) -> None:
        """Write the marker that ends a producer's transaction in this partition: WriteTxnMarkers."""
        try:
            place = self._active(partition)
            kind = ControlType.COMMIT if is_committed else ControlType.ABORT
            marker = build_end_marker(
                EndTransactionMarker(kind, coordinator_epoch),
                timestamp=now_ms,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            )
            place.written = self._log.append(place.key, marker, now_ms, transaction_version)
        except KafkaError as error:
            refuse(error, now_ms)
            return
        place.shard.replay_end_transaction(producer_id, producer_epoch, is_committed)
        self._when_committed(place, StateChange((), None), answer, refuse, now_ms)

    def _carry_out(
        self, place: _Place[S], change: StateChange[R], answer: Answer[R], refuse: Refuse, now_ms: int
    ) -> None:
        if change.records:
            try:
                self._append(place, change, now_ms)
            except KafkaError as error:
                _log.warning("%s: %d records could not be written: %s", place.key, len(change.records), error)
                told = coordinator_error(error.code)
                if change.on_done is not None:
                    change.on_done(told, now_ms)
                refuse(KafkaError(told, str(error)), now_ms)
                return
        self._when_committed(place, change, answer, refuse, now_ms)

    def _append(self, place: _Place[S], change: StateChange[R], now_ms: int) -> None:
        limit = self._log.batch_bytes_max(place.key)
        for batch, records in build_batches(change, place.key, limit, self._codec, now_ms):
            place.written = end = self._log.append(place.key, batch, now_ms)
            if isinstance(change.records, PackedRecords):
                change.records.replay(end - change.records.count)
            elif change.is_replayed:
                for offset, record in enumerate(records, end - len(records)):
                    placed = CoordinatorRecord(record.key, record.value, record.version, offset)
                    place.shard.replay(placed, change.producer_id, change.producer_epoch)

    def _when_committed(
        self, place: _Place[S], change: StateChange[R], answer: Answer[R], refuse: Refuse, now_ms: int
    ) -> None:
        def finish(code: ErrorCode, now_ms: int) -> None:
            told = coordinator_error(code)
            if change.on_done is not None:
                change.on_done(told, now_ms)
            if told is ErrorCode.NONE:
                answer(change.response, now_ms)
            else:
                refuse(KafkaError(told), now_ms)

        end = place.written

        def verdict() -> ErrorCode | None:
            if self._places.get(place.key.partition) is not place or place.state is not ShardState.ACTIVE:
                return ErrorCode.NOT_COORDINATOR
            return self._log.commit_error(place.key, end)

        code = verdict()
        if code is not None:
            finish(code, now_ms)
            return
        self._purgatory.watch(DelayedCommit(verdict, finish, now_ms + self._write_timeout_ms), [place.key])

    # Time

    def next_deadline_ms(self) -> int | None:
        alarm_ms = self._alarm.next_ms
        if not self._loading:
            return alarm_ms
        return self._load_ms if alarm_ms is None else min(self._load_ms, alarm_ms)

    def tick(self, now_ms: int) -> None:
        """A piece of what is to be loaded, and every timer that is due."""
        if now_ms >= self._load_ms:
            self._load(LOAD_BYTES, now_ms)
        if self._alarm.next_ms is None or now_ms < self._alarm.next_ms:
            return
        for place in tuple(self._places.values()):
            while place.state is ShardState.ACTIVE and (due := place.timers.take_due(now_ms)) is not None:
                self._run_due(place, due, now_ms)
        self._alarm.next_ms = None
        for place in self._places.values():
            deadline_ms = place.timers.next_deadline_ms()
            if deadline_ms is not None:
                self._alarm.set(deadline_ms)

    def _load(self, budget: int, now_ms: int) -> None:
        while self._loading and budget > 0:
            place = self._places[next(iter(self._loading))]
            assert place.loading is not None
            try:
                budget -= place.loading.step(budget)
                if place.loading.is_done:
                    self._finish_loading(place, now_ms)
            except (KafkaError, CorruptBatch, ProtocolError, OSError) as error:
                if is_shortage(error):
                    _log.warning("%s is loaded later: %s", place.key, error)
                    self._load_ms = now_ms + SHORTAGE_RETRY_MS
                    return
                self._fail(place, error, now_ms)

    def load_all(self, now_ms: int) -> None:
        """Everything that is to be loaded, however long it takes."""
        while self._loading and now_ms >= self._load_ms:
            self._load(LOAD_BYTES, now_ms)

    def _run_due(self, place: _Place[S], due: Due, now_ms: int) -> None:
        change = due.operation(now_ms)
        if change is None:
            return

        def refuse(_: KafkaError, now_ms: int) -> None:
            if place.state is ShardState.ACTIVE and due.key not in place.timers:
                place.timers.schedule(due.key, now_ms + RETRY_MS, due.operation)

        self._carry_out(place, change, _nothing, refuse, now_ms)

    def change_all(self, operation: Callable[[S], StateChange[Any] | None], now_ms: int) -> None:
        """Carry out an operation, that nobody waits for, in every shard that is loaded."""
        for place in tuple(self._places.values()):
            if place.state is ShardState.ACTIVE:
                self._run_due(place, Due(operation, partial(_asked_of, operation, place.shard)), now_ms)


def _asked_of(operation: Callable[[S], StateChange[Any] | None], shard: S, _: int) -> StateChange[Any] | None:
    return operation(shard)


def _nothing(_: Any, __: int) -> None:
    """Nobody waits for what a timer does."""
