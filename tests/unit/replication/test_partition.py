"""Partition: roles and epochs, fencing, append as leader, reads with epochs."""

from __future__ import annotations

import pytest

from tailrace.log.leader_epochs import EpochEnd, EpochStart
from tailrace.log.reading.log_read import OffsetOutOfRange
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.replication.follower import FollowerRole
from tailrace.replication.leader import LeaderRole
from tailrace.replication.partition import Partition
from tests.simulation.node import NOW_MS, Node, broker, registration
from tests.support.batches import batch


def code_of(refused: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return refused.value.code


# Roles


def test_a_leader_notes_its_epoch_even_before_it_writes() -> None:
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=4))
    assert partition.is_leader
    assert isinstance(partition.role, LeaderRole)
    assert (partition.leader_id, partition.leader_epoch) == (1, 4)
    assert partition.log.epochs.entries == [EpochStart(4, 0)]
    assert partition.role.epoch_start_offset == 0


def test_only_a_new_leader_epoch_makes_a_new_role() -> None:
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=4, partition_epoch=1))
    role = partition.role
    assert not partition.make_leader(registration(1, leader_epoch=4, partition_epoch=2), NOW_MS)
    assert partition.role is role
    assert partition.make_leader(registration(1, leader_epoch=5, partition_epoch=3), NOW_MS)
    assert partition.role is not role
    assert partition.log.epochs.entries == [EpochStart(5, 0)]


def test_metadata_of_an_older_partition_epoch_is_ignored() -> None:
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=4, partition_epoch=7))
    assert not partition.make_follower(registration(2, (1, 2), leader_epoch=3, partition_epoch=6))
    assert not partition.make_leader(registration(1, leader_epoch=9, partition_epoch=6), NOW_MS)
    assert (partition.is_leader, partition.leader_epoch, partition.partition_epoch) == (True, 4, 7)
    assert partition.make_follower(registration(2, (1, 2), leader_epoch=5, partition_epoch=7))
    assert isinstance(partition.role, FollowerRole)
    assert partition.leader is None
    assert (partition.leader_id, partition.leader_epoch) == (2, 5)


def test_a_partition_epoch_from_the_controllers_response_makes_older_metadata_ignored() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2), (1,), partition_epoch=3))
    assert partition.leader is not None
    partition.leader.isr_changes.partition_epoch = 5  # as AlterPartition answered
    assert not partition.make_leader(registration(1, (1, 2), (1,), partition_epoch=4), NOW_MS)
    assert not partition.make_follower(registration(2, (1, 2), leader_epoch=1, partition_epoch=4))
    assert partition.is_leader


def test_a_follower_restarts_fetching_in_every_leader_epoch() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2), leader_epoch=1, partition_epoch=1))
    role = partition.role
    assert not partition.make_follower(registration(2, (1, 2), leader_epoch=1, partition_epoch=2))
    assert partition.role is role
    assert partition.make_follower(registration(2, (1, 2), leader_epoch=2, partition_epoch=3))
    assert partition.role is not role


def test_a_re_elected_leader_keeps_the_progress_of_its_followers() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2), partition_epoch=1))
    node.append(partition, b"a")
    partition.leader.note_fetch(partition.leader.followers[2], partition.log.marks.log_end, 0, 1, 102, NOW_MS)
    partition.make_leader(registration(1, (1, 2), leader_epoch=1, partition_epoch=2), NOW_MS + 5)
    assert partition.leader.followers[2].log_end_offset == 1
    assert partition.leader.followers[2].last_caught_up_ms == NOW_MS + 5
    partition.make_follower(registration(2, (1, 2), leader_epoch=2, partition_epoch=3))
    partition.make_leader(registration(1, (1, 2), leader_epoch=3, partition_epoch=4), NOW_MS + 9)
    assert partition.leader.followers[2].log_end_offset == -1


def test_replicas_that_are_no_longer_assigned_are_removed() -> None:
    node = Node()
    partition = node.host(state=registration(1, (1, 2, 3), partition_epoch=1))
    partition.make_leader(registration(1, (1, 3, 4), (1, 3), partition_epoch=2), NOW_MS)
    assert set(partition.leader.followers) == {3, 4}
    assert partition.replicas == (1, 3, 4)


# Fencing


@pytest.fixture
def led_in_epoch_5() -> Partition:
    return Node().host(state=registration(1, leader_epoch=5))


@pytest.fixture
def followed_in_epoch_5() -> Partition:
    return Node().host(state=registration(2, (1, 2), leader_epoch=5))


@pytest.mark.parametrize(
    ("epoch", "leader_only", "led", "followed"),
    [
        (-1, True, None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (-1, False, None, None),
        (5, True, None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, False, None, None),
        (4, True, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
        (4, False, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
        (6, True, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (6, False, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epochs_are_fenced_before_leadership(
    led_in_epoch_5: Partition,
    followed_in_epoch_5: Partition,
    epoch: int,
    leader_only: bool,
    led: ErrorCode | None,
    followed: ErrorCode | None,
) -> None:
    assert led_in_epoch_5.fencing_error(epoch, leader_only=leader_only) == led
    assert followed_in_epoch_5.fencing_error(epoch, leader_only=leader_only) == followed


def test_a_replica_without_a_role_refuses_every_request() -> None:
    node = Node()
    partition = node.host()
    fresh = Partition(partition.log, node.settings, bytes(16))
    assert fresh.fencing_error(-1, leader_only=False) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_refusal_names_the_epochs(led_in_epoch_5: Partition) -> None:
    with pytest.raises(KafkaError, match=r"the request has leader epoch 4; the leader is broker 1 in epoch 5"):
        led_in_epoch_5.fence(4, leader_only=True)


# Append


def test_the_high_watermark_of_a_lone_replica_moves_with_the_append() -> None:
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=3))
    appended = partition.append_as_leader(batch(b"a", b"b"), required_acks=-1, now_ms=NOW_MS)
    assert (appended.result.first_offset, appended.result.last_offset) == (0, 1)
    assert appended.high_watermark_moved
    assert partition.log.high_watermark == 2
    assert partition.log.epochs.latest == EpochStart(3, 0)


def test_only_the_leader_accepts_records() -> None:
    partition = Node().host(state=registration(2, (1, 2)))
    with pytest.raises(KafkaError) as refused:
        partition.append_as_leader(bytearray(), required_acks=1, now_ms=NOW_MS)
    assert code_of(refused) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_all_needs_min_insync_replicas_and_acks_1_does_not() -> None:
    node = Node()
    partition = node.host(state=registration(1, (1, 2, 3), (1,)), config={"min.insync.replicas": "2"})
    with pytest.raises(KafkaError, match=r"1 replica\(s\) in sync, min.insync.replicas is 2") as refused:
        node.append(partition, b"a", acks=-1)
    assert code_of(refused) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    node.append(partition, b"a", acks=1)
    assert partition.log.log_end_offset == 1


def test_min_insync_replicas_above_the_number_of_replicas_means_all_of_them() -> None:
    node = Node()
    partition = node.host(config={"min.insync.replicas": "3"})
    node.append(partition, b"a", acks=-1)
    assert partition.log.high_watermark == 1


def test_the_partitions_high_watermark_does_not_move_below_min_insync_replicas() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2), (1,)), config={"min.insync.replicas": "2"})
    node.append(partition, b"a", acks=1)
    assert partition.log.high_watermark == 0


def test_acks_are_complete_when_the_high_watermark_has_passed_the_records() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)), config={"min.insync.replicas": "2"})
    node.append(partition, b"a")
    assert partition.acks_error(1) is None
    partition.log.advance_high_watermark(1)
    assert partition.acks_error(1) == ErrorCode.NONE
    assert partition.acks_error(2) is None
    partition.leader.isr.commit((1,))
    assert partition.acks_error(1) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    partition.make_follower(registration(2, (1, 2), leader_epoch=1, partition_epoch=1))
    assert partition.acks_error(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Reads and epochs


def with_epochs() -> tuple[Node, Partition]:
    """Return a partition in which epoch 0 wrote offsets 0-1, epoch 2 wrote 2-4, and epoch 5 leads."""
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=0))
    node.append(partition, b"a", b"b")
    node.apply(partition, registration(1, leader_epoch=2, partition_epoch=1))
    node.append(partition, b"c", b"d", b"e")
    node.apply(partition, registration(1, leader_epoch=5, partition_epoch=2))
    return node, partition


def read(partition: Partition, offset: int, epoch: int):  # type: ignore[no-untyped-def]
    return partition.read(offset, 1_000, Isolation.LOG_END, at_least_one=True, last_fetched_epoch=epoch)


def test_a_reader_whose_epochs_agree_gets_no_diverging_epoch() -> None:
    _, partition = with_epochs()
    for offset, epoch in ((0, 0), (2, 0), (2, 2), (5, 2)):
        found = read(partition, offset, epoch)
        assert found.diverging is None
        assert found.log is not None


def test_a_reader_past_the_end_of_its_epoch_diverges_there() -> None:
    _, partition = with_epochs()
    assert read(partition, 4, 0).diverging == EpochEnd(0, 2)
    assert read(partition, 3, 0).diverging == EpochEnd(0, 2)


def test_a_reader_with_an_unknown_epoch_diverges_at_the_previous_epoch() -> None:
    _, partition = with_epochs()
    found = read(partition, 3, 1)
    assert found.diverging == EpochEnd(0, 2)
    assert found.log is None
    assert (found.high_watermark, found.log_start_offset, found.last_stable_offset) == (5, 0, 5)
    assert read(partition, 5, 3).diverging == EpochEnd(2, 5)


def test_an_epoch_that_is_newer_than_all_is_out_of_range() -> None:
    _, partition = with_epochs()
    with pytest.raises(OffsetOutOfRange):
        read(partition, 3, 6)


def test_a_fetch_offset_below_the_log_start_is_out_of_range_even_when_epochs_diverge() -> None:
    """KAFKA-12996: the reader must restart, not truncate to a deleted offset."""
    node, partition = with_epochs()
    partition.delete_records(3, node.now_ms)
    assert read(partition, 4, 4).diverging == EpochEnd(2, 5)
    for offset, epoch in ((1, 4), (2, 3), (1, 1), (2, 0)):
        with pytest.raises(OffsetOutOfRange):
            read(partition, offset, epoch)


def test_a_read_in_the_middle_of_a_batch_begins_with_that_batch() -> None:
    _, partition = with_epochs()
    found = read(partition, 3, -1)
    assert found.log.position.offset == 2
    assert found.log.slice is not None


def test_end_of_epoch_returns_the_end_offset_of_an_epoch() -> None:
    _, partition = with_epochs()
    assert partition.end_of_epoch(0) == EpochEnd(0, 2)
    assert partition.end_of_epoch(5, current_leader_epoch=5) == EpochEnd(5, 5)
    with pytest.raises(KafkaError) as refused:
        partition.end_of_epoch(0, current_leader_epoch=4)
    assert code_of(refused) == ErrorCode.FENCED_LEADER_EPOCH


def test_a_replica_that_is_not_assigned_is_refused() -> None:
    """With an epoch the metadata may be outdated; without one the request is wrong."""
    _, partition = with_epochs()
    with pytest.raises(KafkaError) as refused:
        partition.follower(9, 5)
    assert code_of(refused) == ErrorCode.UNKNOWN_LEADER_EPOCH
    with pytest.raises(KafkaError) as refused:
        partition.follower(9, -1)
    assert code_of(refused) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Delete records


def test_records_are_deleted_up_to_an_offset_or_to_the_high_watermark() -> None:
    _, partition = with_epochs()
    assert partition.delete_records(2, NOW_MS) == 2
    assert partition.log.log_start_offset == 2
    assert partition.low_watermark() == 2
    assert partition.delete_records(-1, NOW_MS) == 5
    assert partition.log.log_start_offset == 5


@pytest.mark.parametrize("offset", [-2, 6])
def test_records_outside_the_log_cannot_be_deleted(offset: int) -> None:
    _, partition = with_epochs()
    with pytest.raises(KafkaError) as refused:
        partition.delete_records(offset, NOW_MS)
    assert code_of(refused) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_of_a_topic_that_is_only_compacted_cannot_be_deleted() -> None:
    partition = Node().host(config={"cleanup.policy": "compact"})
    with pytest.raises(KafkaError) as refused:
        partition.delete_records(0, NOW_MS)
    assert code_of(refused) == ErrorCode.POLICY_VIOLATION
    follower = Node().host(state=registration(2, (1, 2)))
    with pytest.raises(KafkaError) as refused:
        follower.delete_records(0, NOW_MS)
    assert code_of(refused) == ErrorCode.NOT_LEADER_OR_FOLLOWER
