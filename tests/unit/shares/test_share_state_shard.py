"""The persisted state of share groups: combined batches, snapshots and updates, fencing, replay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.state.persisted_state import SharePartitionKey, ShareWrite, StateBatch, combine
from tailrace.shares.state.share_state_shard import ShareStateSettings, ShareStateShard
from tests.unit.coordinator.consumers import image_of, topic_id

KEY = SharePartitionKey("group", topic_id("t"), 0)

batches = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 8),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)


@given(batches, batches, st.integers(-1, 20))
def test_combined_batches_keep_the_highest_delivery_count_and_state(known, news, start):
    combined = combine(known, news, start)
    fates: dict[int, tuple[int, int]] = {}
    for batch in (*known, *news):
        for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
            fates[offset] = max(fates.get(offset, (0, 0)), (batch.delivery_count, batch.delivery_state))
    reported = {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in combined
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert reported == fates
    assert sum(batch.last_offset - batch.first_offset + 1 for batch in combined) == len(fates)
    assert list(combined) == sorted(combined)
    assert combine(combined, (), start) == combined  # nothing is left to put together


class Log:
    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.settings = ShareStateSettings(updates_per_snapshot=updates_per_snapshot)
        self.records: list[CoordinatorRecord] = []
        self.reload()

    def reload(self) -> None:
        self.shard = ShareStateShard(self.settings, lambda: image_of({"t": 1}))
        for record in self.records:
            self.shard.replay(record, -1, -1)

    def apply(self, change: StateChange[object]) -> object:
        for record in change.records:
            stored = record._replace(offset=len(self.records))
            self.records.append(stored)
            self.shard.replay(stored, -1, -1)
        return change.response


def write(start: int, *batches: StateBatch, leader_epoch: int = 0, state_epoch: int = 1) -> ShareWrite:
    return ShareWrite(state_epoch, leader_epoch, start, 0, batches)


def test_a_partition_is_initialized_written_and_read_again():
    log = Log()
    log.apply(log.shard.initialize(KEY, 1, 10, 1_000))
    log.apply(log.shard.write(KEY, write(-1, StateBatch(10, 14, 2, 1)), 1_001))
    log.apply(log.shard.write(KEY, write(12, StateBatch(15, 15, 0, 2)), 1_002))
    for _ in range(2):
        state = log.shard.summary(KEY)
        assert state is not None
        assert state.start_offset == 12
        assert state.batches == (StateBatch(12, 14, 2, 1), StateBatch(15, 15, 0, 2))
        log.reload()


def test_a_snapshot_follows_after_some_updates():
    log = Log(updates_per_snapshot=3)
    log.apply(log.shard.initialize(KEY, 1, 0, 1_000))
    for number in range(10):
        log.apply(log.shard.write(KEY, write(number, StateBatch(number, number, 2, 1)), 1_000 + number))
    kinds = "".join("s" if type(record.key).__name__ == "ShareSnapshotKey" else "u" for record in log.records)
    assert kinds == "suuusuuusuu"
    assert log.shard.superfluous_offset == 8
    before = log.shard.summary(KEY)
    log.reload()
    assert log.shard.summary(KEY) == before


def test_an_old_leader_and_an_old_state_are_fenced():
    log = Log()
    log.apply(log.shard.initialize(KEY, 5, 0, 1_000))
    log.apply(log.shard.read(KEY, 3, 1_000))
    for leader, state, code in ((2, 5, ErrorCode.FENCED_LEADER_EPOCH), (3, 4, ErrorCode.FENCED_STATE_EPOCH)):
        with pytest.raises(KafkaError) as caught:
            log.shard.write(KEY, write(0, leader_epoch=leader, state_epoch=state), 1_000)
        assert caught.value.code is code
    with pytest.raises(KafkaError) as caught:
        log.shard.initialize(KEY, 4, 0, 1_000)
    assert caught.value.code is ErrorCode.FENCED_STATE_EPOCH
    log.reload()
    with pytest.raises(KafkaError):
        log.shard.read(KEY, 2, 1_000)


def test_an_uninitialized_partition_is_refused():
    log = Log()
    with pytest.raises(KafkaError) as caught:
        log.shard.write(KEY, write(0), 1_000)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert log.shard.summary(KEY) is None
    with pytest.raises(KafkaError) as caught:
        log.shard.initialize(KEY._replace(partition=9), 1, 0, 1_000)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_partition_has_no_state():
    log = Log()
    log.apply(log.shard.initialize(KEY, 1, 0, 1_000))
    log.apply(log.shard.delete(KEY))
    assert log.shard.states == {}
    log.apply(log.shard.initialize(KEY, 1, 0, 1_000))
    change = log.shard.forget_topics({KEY.topic_id})
    assert change is not None
    log.apply(change)
    assert log.shard.states == {}
