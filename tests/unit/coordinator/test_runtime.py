"""CoordinatorRuntime: an exception of any kind costs one operation; the other groups of the partition are served."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from tailrace.coordinator.runtime import RETRY_MS, CoordinatorRuntime
from tailrace.coordinator.shard import CoordinatorRecord, EncodedRecord, Part, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.model.errors import ErrorCode, FatalError, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import OffsetCommitKey, OffsetCommitValue
from tailrace.records.batch import RecordBatch
from tailrace.waiting.purgatory import Purgatory

KEY = TopicPartition("__consumer_offsets", 0)
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR
TOO_LONG = "x" * 32_768


class Log:
    """One partition in memory."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.end = 0
        self.after_append: Callable[[], None] = lambda: None

    def bounds(self, key: TopicPartition) -> tuple[int, int]:
        return 0, self.end

    def read(self, key: TopicPartition, offset: int, max_bytes: int) -> bytes:
        return b"".join(one for one in self.batches if RecordBatch(one).last_offset >= offset)

    def batch_bytes_max(self, key: TopicPartition) -> int:
        return 200_000

    def append(self, key: TopicPartition, batch: bytes, now_ms: int, transaction_version: int = 0) -> int:
        self.batches.append(self.end.to_bytes(8, "big") + batch[8:])
        self.end = RecordBatch(self.batches[-1]).last_offset + 1
        self.after_append()
        return self.end

    def commit_error(self, key: TopicPartition, end: int) -> ErrorCode | None:
        return ErrorCode.NONE


class Shard:
    """Counts what each group has committed last; groups called "bad" cannot be replayed."""

    family = "group"

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.offsets: dict[str, int] = {}
        self.started: list[str] = []

    def replay(self, record: CoordinatorRecord, producer_id: int, producer_epoch: int) -> None:
        assert isinstance(record.key, OffsetCommitKey)
        assert isinstance(record.value, OffsetCommitValue)
        assert record.key.group != "bad", "a bug in replay"
        self.offsets[record.key.group] = record.value.offset

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, is_committed: bool) -> None:
        raise AssertionError("a bug in replay")

    def _start(self, group: str, now_ms: int) -> None:
        assert group != "a", "a bug in one group"
        self.started.append(group)

    def loaded(self, now_ms: int) -> Iterable[Part]:
        return [partial(self._start, group) for group in self.offsets]

    def unloaded(self, now_ms: int) -> Iterable[Part]:
        return [_raise]


class World:
    def __init__(self) -> None:
        self.log = Log()
        self.runtime: CoordinatorRuntime[Shard] = CoordinatorRuntime(
            KEY.topic, self.log, Purgatory(), lambda _, timers: Shard(timers), write_timeout_ms=1_000
        )
        self.runtime.lead(0, 0)
        self.answers: list[Any] = []

    @property
    def shard(self) -> Shard:
        return self.runtime.shard(0)

    def write(self, operation: Callable[[Shard], StateChange[Any]]) -> Any:
        """Return the response, or the code of the refusal. Check that there is exactly one of them."""
        answers: list[Any] = []
        self.runtime.write(
            0,
            operation,
            lambda response, _: answers.append(response),
            lambda error, _: answers.append(error.code),
            0,
        )
        (answer,) = answers
        return answer

    def commit(self, group: str, offset: int = 1) -> Any:
        return self.write(lambda _: StateChange([record(group, offset)], "committed"))

    def load(self) -> None:
        while self.runtime.is_loading:
            self.runtime.tick(0)


def record(group: str, offset: int) -> CoordinatorRecord:
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0)
    return CoordinatorRecord(OffsetCommitKey(group=group, topic="t", partition=0), value, 4)


def _raise(_: Any = None) -> Any:
    raise AssertionError("a bug")


@pytest.fixture
def world() -> World:
    return World()


def test_a_bug_in_an_operation_refuses_that_operation_only(world: World) -> None:
    assert world.write(_raise) is UNEXPECTED
    assert world.commit("a", 5) == "committed"
    assert world.shard.offsets == {"a": 5}
    assert world.runtime.failures.operations == 1


def test_a_record_that_cannot_be_encoded_is_not_appended(world: World) -> None:
    done: list[ErrorCode] = []
    change = StateChange([record("a", 1), record(TOO_LONG, 1)], "committed", on_done=lambda code, _: done.append(code))
    assert world.write(lambda _: change) is UNEXPECTED
    assert (done, world.log.end, world.shard.offsets) == ([UNEXPECTED], 0, {})
    assert world.commit("b") == "committed"


def test_a_change_that_is_not_atomic_leaves_out_only_the_unwritable_record(world: World) -> None:
    change = StateChange([record("a", 1), record(TOO_LONG, 1), record("b", 2)], "written", is_atomic=False)
    assert world.write(lambda _: change) == "written"
    assert world.shard.offsets == {"a": 1, "b": 2}
    assert world.runtime.failures.operations == 1
    alone = StateChange([record(TOO_LONG, 1)], "written", is_atomic=False)
    assert world.write(lambda _: alone) == "written"
    assert world.log.end == 2


def test_a_record_too_large_for_any_batch_is_left_out_of_a_change_that_is_not_atomic(world: World) -> None:
    large = EncodedRecord(b"key", bytes(200_001))
    assert world.write(lambda _: StateChange([large, record("a", 1)], "written", is_atomic=False)) == "written"
    assert world.write(lambda _: StateChange([large], "written")) is UNEXPECTED
    assert world.log.end == 1


def test_a_shard_whose_replay_fails_is_loaded_again_without_that_record(world: World) -> None:
    world.commit("b", 7)
    before = world.shard
    assert world.write(lambda _: StateChange([record("c", 1), record("bad", 1)], "committed")) is UNEXPECTED
    world.load()
    assert world.shard is not before
    assert world.shard.offsets == {"b": 7, "c": 1}, "what the log says, without the record that cannot be replayed"
    failures = world.runtime.failures
    assert (failures.reloads, failures.skipped) == (1, 1)
    assert world.commit("b", 8) == "committed"


def test_a_shard_is_loaded_again_if_an_append_has_an_unknown_result(world: World) -> None:
    world.log.after_append = _raise
    assert world.commit("b", 3) is UNEXPECTED
    world.log.after_append = lambda: None
    world.load()
    assert world.shard.offsets == {"b": 3}


def test_a_marker_whose_replay_fails_refuses_the_marker_only(world: World) -> None:
    codes: list[ErrorCode] = []
    for epoch in (0, -1):  # a bug in replay, and an epoch that no marker can have
        world.runtime.end_transaction(0, 1, epoch, 0, True, _raise, lambda error, _: codes.append(error.code), 0)
        world.load()
    assert codes == [UNEXPECTED, UNEXPECTED]
    assert world.commit("b") == "committed"


def test_a_bug_after_the_commit_of_a_change_loads_the_shard_again(world: World) -> None:
    change = StateChange([record("b", 4)], "committed", is_replayed=False, on_done=lambda *_: _raise())
    assert world.write(lambda _: change) is UNEXPECTED
    world.load()
    assert world.shard.offsets == {"b": 4}


def test_a_bug_in_an_answer_is_counted(world: World) -> None:
    world.runtime.read(0, lambda shard: shard.offsets, lambda *_: _raise(), lambda *_: _raise(), 0)
    world.runtime.write(0, _raise, lambda *_: _raise(), lambda *_: _raise(), 0)
    assert world.runtime.failures.operations == 3
    assert world.commit("b") == "committed"


def test_a_failed_timer_runs_again_after_the_retry_interval(world: World) -> None:
    runs: list[int] = []

    def fail(now_ms: int) -> StateChange[None]:
        runs.append(now_ms)
        if len(runs) % 2:
            raise AssertionError("a bug")
        return StateChange([record(TOO_LONG, 1)], None)

    world.shard.timers.schedule("fails", 10, fail)
    world.shard.timers.schedule("serves", 10, lambda now_ms: StateChange([record("b", now_ms)], None))
    for now_ms in range(0, 3 * RETRY_MS, 5):
        world.runtime.tick(now_ms)
    assert runs == [10, 10 + RETRY_MS, 10 + 2 * RETRY_MS]
    assert world.shard.offsets == {"b": 10}


def test_a_timer_that_schedules_itself_for_now_does_not_hold_the_loop(world: World) -> None:
    runs: list[int] = []

    def again(now_ms: int) -> None:
        runs.append(now_ms)
        world.shard.timers.schedule("again", now_ms - 1, again)

    world.shard.timers.schedule("again", 5, again)
    for now_ms in (5, 5, 6):
        world.runtime.tick(now_ms)
    assert runs == [5, 6]


def test_many_timers_are_run_over_several_ticks(world: World) -> None:
    runs: list[int] = []
    for number in range(1_000):
        world.shard.timers.schedule(number, 5, runs.append)
    world.runtime.tick(5)
    assert 0 < len(runs) < 1_000
    assert world.runtime.next_deadline_ms() == 5
    for _ in range(10):
        world.runtime.tick(5)
    assert len(runs) == 1_000


def test_timers_stop_when_the_turn_is_over(world: World) -> None:
    runs: list[int] = []
    for number in range(5):
        world.shard.timers.schedule(number, 5, runs.append)
    world.runtime.tick(5, lambda: True)
    assert len(runs) == 1
    assert world.runtime.next_deadline_ms() == 5
    world.runtime.tick(5, lambda: len(runs) == 3)
    assert len(runs) == 3


def test_a_bug_in_one_group_leaves_the_start_of_the_others_alone(world: World) -> None:
    for group in ("a", "b"):
        world.commit(group)
    world.runtime.lead(0, 0)
    world.load()
    assert world.shard.started == ["b"]


def test_a_damaged_batch_ends_the_load_and_not_the_broker(world: World) -> None:
    world.commit("b")
    damaged = bytearray(world.log.batches[0])
    damaged[57:61] = (1000).to_bytes(4, "big")  # more records than there are
    world.log.batches[0] = bytes(damaged)
    world.runtime.lead(0, 0)
    world.load()
    with pytest.raises(KafkaError) as refused:
        world.runtime.shard(0)
    assert refused.value.code is ErrorCode.NOT_COORDINATOR


def test_a_fatal_error_stops_the_broker(world: World) -> None:
    def fail() -> None:
        raise FatalError("the log is broken")

    world.log.after_append = fail
    with pytest.raises(FatalError):
        world.commit("b")
