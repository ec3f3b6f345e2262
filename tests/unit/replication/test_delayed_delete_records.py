"""DeleteRecords: the leader moves its start, the answer waits for the others."""

from __future__ import annotations

import errno

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.replication.delayed_delete_records import DelayedDeleteRecords, DeletedPartition, delete_on_leader
from tests.simulation.node import Node, broker, registration
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles


class Deleting:
    def __init__(self, offset: int = 2) -> None:
        self.node = Node()
        self.node.know(broker(2))
        self.partition = self.node.host(state=registration(1, (1, 2)))
        self.node.append(self.partition, b"a", b"b", b"c")
        self.partition.log.advance_high_watermark(3)
        self.part = delete_on_leader(self.node.partitions, self.partition.key, offset, self.node.now_ms)
        self.answers: list[tuple[int, int]] = []
        self.operation = DelayedDeleteRecords(
            [self.part], self.node.partitions, self.node.now_ms + 1_000, lambda one, now_ms: self.note(one)
        )
        self.node.purgatory.try_complete_or_watch(self.operation, self.operation.keys(), self.node.now_ms)

    def note(self, operation: DelayedDeleteRecords) -> None:
        response = operation.parts[0].response
        self.answers.append((response.error_code, response.low_watermark))

    def fetched(self, log_start: int) -> None:
        leader, log = self.partition.leader, self.partition.log
        assert leader is not None
        leader.note_fetch(leader.followers[2], log.marks.log_end, log_start, 3, 102, self.node.now_ms)
        self.node.check(self.partition)


def test_delete_records_waits_until_every_live_replica_has_moved_its_log_start() -> None:
    deleting = Deleting()
    assert deleting.partition.log.log_start_offset == 2
    assert not deleting.part.is_done
    assert deleting.answers == []
    deleting.fetched(1)
    assert deleting.answers == []
    deleting.fetched(2)
    assert deleting.answers == [(ErrorCode.NONE, 2)]


def test_delete_records_times_out_at_its_deadline() -> None:
    deleting = Deleting()
    deleting.node.pass_ms(1_000)
    assert deleting.answers == [(ErrorCode.REQUEST_TIMED_OUT, -1)]


def test_delete_records_ends_when_the_leadership_is_lost() -> None:
    deleting = Deleting()
    deleting.node.apply(deleting.partition, registration(2, (1, 2), leader_epoch=1, partition_epoch=1))
    assert deleting.answers == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


@pytest.mark.parametrize("how", ["offline", "removed"])
def test_delete_records_ends_when_the_replica_is_removed(how: str) -> None:
    deleting = Deleting()
    if how == "offline":
        deleting.node.partitions.mark_offline(deleting.partition.key)
    else:
        deleting.node.partitions.remove(deleting.partition.key)
    deleting.node.check(deleting.partition)
    expected = ErrorCode.KAFKA_STORAGE_ERROR if how == "offline" else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert deleting.answers == [(expected, -1)]


def test_delete_records_on_a_single_replica_completes_at_once() -> None:
    node = Node()
    partition = node.host()
    node.append(partition, b"a", b"b")
    part = delete_on_leader(node.partitions, partition.key, -1, node.now_ms)
    assert part.is_done
    assert (part.response.error_code, part.response.low_watermark) == (0, 2)


def test_a_refused_partition_has_the_error_of_the_refusal() -> None:
    node = Node()
    partition = node.host()
    for key, offset, expected in (
        (TopicPartition("other", 0), 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (partition.key, 5, ErrorCode.OFFSET_OUT_OF_RANGE),
    ):
        part = delete_on_leader(node.partitions, key, offset, node.now_ms)
        assert part.is_done
        assert (part.response.error_code, part.response.low_watermark) == (expected, -1)


def test_a_failing_disk_takes_the_partition_offline() -> None:
    files = FaultyFiles(MemoryFiles())
    node = Node(files=files)
    partition = node.host()
    node.append(partition, b"a")
    files.fail("sync", errno.EIO)
    part = delete_on_leader(node.partitions, partition.key, 1, node.now_ms)
    assert part.response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.partitions.offline == {partition.key}


def test_a_part_that_was_refused_is_not_waited_for() -> None:
    node = Node()
    part = DeletedPartition(node.host().key)
    part.response.error_code = ErrorCode.POLICY_VIOLATION
    answers: list[int] = []
    operation = DelayedDeleteRecords(
        [part], node.partitions, node.now_ms + 1, lambda one, now_ms: answers.append(one.parts[0].response.error_code)
    )
    assert node.purgatory.try_complete_or_watch(operation, operation.keys(), node.now_ms)
    assert answers == [ErrorCode.POLICY_VIOLATION]
