"""CoordinatorRuntime: the shards of one coordinator, one per partition of its topic that is led here.

    lead ──► LOADING ──(replayed to the end)──► ACTIVE ──resign──► gone
                │ damage, or no leader any more
                ▼
              FAILED: NOT_COORDINATOR, until this broker becomes the leader again

    write   an operation returns a StateChange, which is appended as one batch and replayed; the response follows once
            it is committed
    read    the response is sent once everything written before is committed
    tick    loading continues, and timers that are due return their StateChanges

On one node an appended record is committed. With followers the response waits in the purgatory for the high watermark;
if the leadership ends first, it is NOT_COORDINATOR. Errors of the append are mapped as in Kafka (`coordinator_error`).

An unexpected exception never leaves this module, unless it is fatal (`failures` counts and logs it):
    operation, encoding    nothing is appended; the client gets UNKNOWN_SERVER_ERROR; a timer runs again after RETRY_MS
    append, replay, done   log and memory may differ: the shard is reloaded, as after an election
    answer                 only the client of that request is affected
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from tailrace.coordinator.coordinator_log import CoordinatorLog
from tailrace.coordinator.delayed_commit import DelayedCommit
from tailrace.coordinator.failures import Failures
from tailrace.coordinator.loading import Loading
from tailrace.coordinator.shard import CoordinatorShard, RecordReplay, StateChange
from tailrace.coordinator.shard_place import ShardPlace, ShardState
from tailrace.coordinator.shard_writer import ReplayFailed, ShardWriter, coordinator_error
from tailrace.coordinator.timers import Alarm, DueTimer, Timers
from tailrace.diagnostics.internal_errors import is_fatal
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.model.log_fields import fields
from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage
from tailrace.protocol.errors import ProtocolError
from tailrace.records.batch import Codec, CorruptBatch
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)

S = TypeVar("S", bound=CoordinatorShard)
R = TypeVar("R")
Answer: TypeAlias = Callable[[R, int], None]  # (response, now_ms)
Refuse: TypeAlias = Callable[[KafkaError, int], None]  # (error, now_ms)

LOAD_BYTES = 1 << 17  # replayed in one step: some ten milliseconds
RETRY_MS = 500  # until a timer is retried whose records could not be written
TIMERS_AT_ONCE = 256  # per tick; then other work is done


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
        replay_of: Callable[[S, int], RecordReplay] | None = None,
        reload: Callable[[int, int], None] | None = None,
    ) -> None:
        """`make_shard(partition, timers)` makes an empty shard. `replay_of(shard, producer_id)` returns the replay of
        frequent records of a batch. `reload(partition, now_ms)` loads a shard again; by default `lead` does."""
        self._replay_of = replay_of
        self.topic = topic
        self._log = log
        self._purgatory = purgatory
        self._make_shard = make_shard
        self._write_timeout_ms = write_timeout_ms
        self._codec = codec
        self._places: dict[int, ShardPlace[S]] = {}
        self._loading: dict[int, None] = {}
        self._load_ms = 0  # when loading resumes; in the future after a lack of descriptors or memory
        self._alarm = Alarm()  # of all shards, because the loop needs the deadline before every wait
        self.failures = Failures()
        self._reload = reload or self.lead

    # Leadership

    def lead(self, partition: int, now_ms: int) -> None:
        """Become the leader of a partition in a new epoch: load its state."""
        self.resign(partition, now_ms)
        key, timers = TopicPartition(self.topic, partition), Timers(self._alarm)
        shard = self._make_shard(partition, timers)
        writer = ShardWriter(self._log, key, shard, self._codec, self.failures)
        place = self._places[partition] = ShardPlace(key, shard, timers, writer, now_ms)
        try:
            replay_of = None if self._replay_of is None else partial(self._replay_of, place.shard)
            loading = Loading(self._log, place.key, place.shard, self.failures, replay_of)
            place.begin(loading)
            self._loading[partition] = None
            if loading.is_done:
                self._finish_loading(place, now_ms)
        except Exception as error:
            self._fail(place, error, now_ms)

    def resign(self, partition: int, now_ms: int) -> None:
        """Unload a partition that is not led here any more, or not in that epoch."""
        place = self._places.pop(partition, None)
        self._loading.pop(partition, None)
        if place is not None:
            self._unload(place, ShardState.RESIGNED, now_ms)

    def _unload(self, place: ShardPlace[S], state: ShardState, now_ms: int) -> None:
        place.end_loading(state)
        for part in place.shard.unloaded(now_ms):
            self.failures.run("the end of leadership", place.key, part, now_ms)
        place.timers.clear()
        self._purgatory.check(place.key, now_ms)

    def _fail(self, place: ShardPlace[S], error: Exception, now_ms: int) -> None:
        if is_fatal(error):
            raise error
        is_bug = not isinstance(error, KafkaError | CorruptBatch | ProtocolError | OSError)
        _log.error(
            "%s cannot be loaded, so its groups or transactions are not available: %s",
            place.key,
            error,
            exc_info=error if is_bug else None,
        )
        self._loading.pop(place.key.partition, None)
        self._unload(place, ShardState.FAILED, now_ms)

    def _finish_loading(self, place: ShardPlace[S], now_ms: int) -> None:
        loading = place.loading
        assert loading is not None
        place.end_loading(ShardState.ACTIVE)
        del self._loading[place.key.partition]
        place.writer.start_at(self._log.bounds(place.key)[1])
        for part in place.shard.loaded(now_ms):
            if place.state is ShardState.ACTIVE:
                self.failures.run("the start of leadership", place.key, part, now_ms)
        if loading.records:
            _log.log(
                logging.WARNING if loading.skipped else logging.INFO,
                "coordinator loaded",
                extra=fields(
                    partition=str(place.key),
                    records=loading.records,
                    skipped=loading.skipped or None,
                    bytes=loading.bytes,
                    took_ms=now_ms - place.began_ms,
                ),
            )

    # Shards

    def active(self) -> Iterator[S]:
        """Yield the loaded shards."""
        for place in tuple(self._places.values()):
            if place.state is ShardState.ACTIVE:
                yield place.shard

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def partitions(self) -> list[int]:
        """Return the partitions led here."""
        return list(self._places)

    def shard(self, partition: int) -> S:
        """Return the shard of a partition. Raise KafkaError unless it is loaded."""
        return self._active(partition).shard

    def _active(self, partition: int) -> ShardPlace[S]:
        place = self._places.get(partition)
        if place is not None:
            if place.state is ShardState.ACTIVE:
                return place
            if place.state is ShardState.LOADING:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{place.key} is being loaded")
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{partition} has its coordinator on another broker")

    # Requests

    def write(
        self,
        partition: int,
        operation: Callable[[S], StateChange[R]],
        answer: Answer[R],
        refuse: Refuse,
        now_ms: int,
        *,
        reads_wait: bool = True,
    ) -> None:
        """Carry out the StateChange of an operation; `answer` or `refuse` is called once. If it has no records, the
        response waits until earlier writes are committed, unless `reads_wait` is False."""
        try:
            place = self._active(partition)
        except KafkaError as error:
            refuse(error, now_ms)
            return
        try:
            change = operation(place.shard)
        except Exception as error:
            self._refuse(place, "an operation", error, refuse, now_ms)
            return
        if reads_wait or change.records:
            self._carry_out(place, change, answer, refuse, now_ms)
        else:
            answer(change.response, now_ms)

    def read(self, partition: int, operation: Callable[[S], R], answer: Answer[R], refuse: Refuse, now_ms: int) -> None:
        """Respond with a part of the state, once everything in it is committed."""
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
        except KafkaError as error:
            refuse(error, now_ms)
            return
        try:
            place.writer.end_transaction(
                producer_id, producer_epoch, coordinator_epoch, is_committed, transaction_version, now_ms
            )
        except Exception as error:
            self._refuse(place, "the end of a transaction", error, refuse, now_ms)
            return
        self._when_committed(place, StateChange((), None), answer, refuse, now_ms)

    def _carry_out(
        self, place: ShardPlace[S], change: StateChange[R], answer: Answer[R], refuse: Refuse, now_ms: int
    ) -> None:
        if change.records:
            try:
                place.writer.write(change, now_ms)
            except Exception as error:
                refusal = error
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                if isinstance(error, KafkaError):
                    self.failures.note_refused(place.key, len(change.records), error, now_ms)
                    code = coordinator_error(error.code)
                    refusal = KafkaError(code, str(error))
                if change.on_done is not None:
                    self.failures.run("taking back a change", place.key, partial(change.on_done, code), now_ms)
                self._refuse(place, "a write", refusal, refuse, now_ms)
                return
        self._when_committed(place, change, answer, refuse, now_ms)

    def _refuse(self, place: ShardPlace[S], operation: str, error: Exception, refuse: Refuse, now_ms: int) -> None:
        """Refuse a request with its KafkaError, or with UNKNOWN_SERVER_ERROR for an unexpected one, as Kafka does."""
        if not isinstance(error, KafkaError):
            if isinstance(error, ReplayFailed):
                self._load_again(place, error.reason, now_ms)
            else:
                self.failures.note_operation(operation, place.key, error, now_ms)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{operation} failed unexpectedly")
        self.failures.run("an answer", place.key, partial(refuse, error), now_ms)

    def _load_again(self, place: ShardPlace[S], reason: Exception, now_ms: int) -> None:
        """Load a shard again, because log and memory may differ. Waiting requests get NOT_COORDINATOR."""
        partition = place.key.partition
        self.failures.note_reload(place.key, reason, now_ms)
        if self._places.get(partition) is not place:
            return  # it is no longer led here, or is being loaded already
        if not self.failures.run("a reload", place.key, partial(self._reload, partition), now_ms):
            self.resign(partition, now_ms)

    def _when_committed(
        self, place: ShardPlace[S], change: StateChange[R], answer: Answer[R], refuse: Refuse, now_ms: int
    ) -> None:
        end = place.writer.end
        code = self._commit_error(place, end)
        if code is not None:
            self._finish(place, change, answer, refuse, code, now_ms)
            return
        self._purgatory.watch(
            DelayedCommit(
                partial(self._commit_error, place, end),
                partial(self._finish, place, change, answer, refuse),
                now_ms + self._write_timeout_ms,
            ),
            [place.key],
            now_ms,
        )

    def _commit_error(self, place: ShardPlace[S], end: int) -> ErrorCode | None:
        """Return NONE if everything below an offset is committed, an error if it never will be, or None to wait."""
        if self._places.get(place.key.partition) is not place or place.state is not ShardState.ACTIVE:
            return ErrorCode.NOT_COORDINATOR
        return self._log.commit_error(place.key, end)

    def _finish(
        self,
        place: ShardPlace[S],
        change: StateChange[R],
        answer: Answer[R],
        refuse: Refuse,
        code: ErrorCode,
        now_ms: int,
    ) -> None:
        """Send the response of a committed change, or refuse the request."""
        code = coordinator_error(code)
        if change.on_done is not None:
            try:
                change.on_done(code, now_ms)
            except Exception as error:
                self._load_again(place, error, now_ms)
                code = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            if code is ErrorCode.NONE:
                answer(change.response, now_ms)
            else:
                refuse(KafkaError(code), now_ms)
        except Exception as error:
            self.failures.note_operation("an answer", place.key, error, now_ms)

    # Time

    def next_deadline_ms(self) -> int | None:
        alarm_ms = self._alarm.next_ms
        if not self._loading:
            return alarm_ms
        return self._load_ms if alarm_ms is None else min(self._load_ms, alarm_ms)

    def tick(self, now_ms: int, is_turn_over: Callable[[], bool] = lambda: False) -> None:
        """Load the next piece of shards to be loaded. Run due timers: at least one, and more until `is_turn_over`."""
        if now_ms >= self._load_ms:
            self._load(LOAD_BYTES, now_ms)
        if self._alarm.next_ms is None or now_ms < self._alarm.next_ms:
            return
        left = TIMERS_AT_ONCE
        for place in tuple(self._places.values()):
            place.timers.begin_run(now_ms)
            while left and place.state is ShardState.ACTIVE and (due := place.timers.take_due(now_ms)) is not None:
                self._run_due(place, due, now_ms)
                left = 0 if is_turn_over() else left - 1
            place.timers.end_run()
        self._alarm.clear()
        for place in self._places.values():
            deadline_ms = place.timers.next_deadline_ms()
            if deadline_ms is not None:
                self._alarm.set(deadline_ms)

    def _load(self, budget: int, now_ms: int) -> None:
        while self._loading and budget > 0:
            place = self._places[next(iter(self._loading))]
            assert place.loading is not None
            try:
                budget -= place.loading.step(budget, now_ms)
                if place.loading.is_done:
                    self._finish_loading(place, now_ms)
            except Exception as error:
                if is_shortage(error):
                    _log.warning("loading of %s postponed: %s", place.key, error)
                    self._load_ms = now_ms + SHORTAGE_RETRY_MS
                    return
                self._fail(place, error, now_ms)

    def load_all(self, now_ms: int) -> None:
        """Load all shards completely."""
        while self._loading and now_ms >= self._load_ms:
            self._load(LOAD_BYTES, now_ms)

    def _run_due(self, place: ShardPlace[S], due: DueTimer, now_ms: int) -> None:
        def refuse(_: KafkaError, now_ms: int) -> None:
            if place.state is ShardState.ACTIVE and due.key not in place.timers:
                place.timers.schedule(due.key, now_ms + RETRY_MS, due.operation)

        try:
            change = due.operation(now_ms)
        except Exception as error:
            self._refuse(place, "a timer", error, refuse, now_ms)
            return
        if change is not None:
            self._carry_out(place, change, _nothing, refuse, now_ms)

    def change_all(self, operation: Callable[[S, Offset, int], StateChange[Any] | None], now_ms: int) -> None:
        """Apply `operation(shard, log end, now_ms)` to every loaded shard. No request waits for it."""
        for place in tuple(self._places.values()):
            if place.state is ShardState.ACTIVE:
                self._run_due(place, DueTimer(operation, partial(operation, place.shard, place.writer.end)), now_ms)


def _nothing(_: Any, __: int) -> None:
    """Ignore the result of a timer."""
