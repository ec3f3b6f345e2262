"""DelayedProduce: acks=all, by case."""

from __future__ import annotations

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.replication import delayed_produce
from tailrace.replication.delayed_produce import DelayedProduce, try_decide
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.replication.produce import ProducePart
from tests.simulation.node import Node, broker, registration
from tests.support.batches import batch
from tests.support.produced import append_produced


class Produced:
    """A Produce request to some partitions of brokers 1 and 2, waiting for broker 2."""

    def __init__(self, partitions: int = 1, **config: str) -> None:
        self.node = Node()
        self.node.know(broker(2))
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.partitions: list[Partition] = [
            self.node.host("topic", n, state=registration(1, (1, 2)), config=settings) for n in range(partitions)
        ]
        self.answers: list[tuple[int, ...]] = []
        self.parts: list[ProducePart] = [
            append_produced(self.node.partitions, one.key, batch(b"a"), required_acks=-1, now_ms=self.node.now_ms)
            for one in self.partitions
        ]
        self.operation = DelayedProduce(
            self.parts, self.node.partitions, self.node.now_ms + 1_000, lambda operation, now_ms: self.note(operation)
        )
        self.node.purgatory.try_complete_or_watch(self.operation, self.operation.keys(), self.node.now_ms)

    def note(self, operation: DelayedProduce) -> None:
        self.answers.append(tuple(part.error for part in operation.parts))

    def replicated(self, n: int) -> None:
        self.partitions[n].log.advance_high_watermark(1)
        self.node.check(self.partitions[n])


def test_acks_all_is_answered_when_the_last_isr_member_catches_up() -> None:
    produced = Produced()
    assert produced.answers == []
    partition = produced.partitions[0]
    assert partition.leader is not None
    follower = partition.leader.followers[2]
    assert partition.leader.note_fetch(follower, partition.log.marks.log_end, 0, 1, 102, produced.node.now_ms)
    produced.node.check(partition)
    assert produced.answers == [(ErrorCode.NONE,)]


def test_every_partition_has_to_be_decided() -> None:
    produced = Produced(partitions=2)
    produced.replicated(1)
    assert produced.answers == []
    produced.replicated(0)
    assert produced.answers == [(0, 0)]


def test_a_check_of_a_partition_looks_at_no_other_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    produced = Produced(partitions=50)
    looked_at: list[int] = []

    def noting(part: ProducePart, partitions: HostedPartitions) -> bool:
        looked_at.append(part.key.partition)
        return try_decide(part, partitions)

    monkeypatch.setattr(delayed_produce, "try_decide", noting)
    for number in range(50):
        produced.replicated(number)
    assert looked_at == list(range(50))
    assert produced.answers == [(0,) * 50]


def test_at_the_deadline_undecided_partitions_have_timed_out() -> None:
    produced = Produced(partitions=2)
    produced.replicated(1)
    produced.node.pass_ms(1_000)
    assert produced.answers == [(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE)]
    produced.replicated(0)
    assert len(produced.answers) == 1


def test_case_a_a_removed_or_offline_partition_gets_its_error() -> None:
    produced = Produced(partitions=3)
    produced.node.partitions.mark_offline(produced.partitions[0].key)
    produced.node.partitions.remove(produced.partitions[1].key)
    produced.node.partitions.remove(produced.partitions[2].key)
    produced.node.unpublish("topic")
    for partition in produced.partitions:
        produced.node.check(partition)
    assert produced.answers == [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]


def test_case_b_lost_leadership_is_not_leader_or_follower() -> None:
    produced = Produced()
    produced.node.apply(produced.partitions[0], registration(2, (1, 2), leader_epoch=1, partition_epoch=1))
    assert produced.answers == [(ErrorCode.NOT_LEADER_OR_FOLLOWER,)]


def test_case_c1_an_isr_shrunk_below_the_minimum_is_not_enough_replicas_after_append() -> None:
    produced = Produced(min_insync_replicas="2")
    leader = produced.partitions[0].leader
    assert leader is not None
    produced.partitions[0].log.advance_high_watermark(1)
    leader.isr.commit((1,))
    produced.node.check(produced.partitions[0])
    assert produced.answers == [(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,)]


def test_a_part_that_was_refused_keeps_its_refusal_and_is_not_waited_for() -> None:
    node = Node()
    refused = ProducePart(node.host("other").key)
    refused.refuse(ErrorCode.CORRUPT_MESSAGE)
    answers: list[int] = []
    operation = DelayedProduce(
        [refused],
        node.partitions,
        node.now_ms + 1,
        lambda one, now_ms: answers.append(one.parts[0].error),
    )
    assert operation.keys() == []
    assert node.purgatory.try_complete_or_watch(operation, operation.keys(), node.now_ms)
    assert answers == [ErrorCode.CORRUPT_MESSAGE]


def test_acks_all_on_a_single_replica_does_not_wait() -> None:
    node = Node()
    partition = node.host()
    part = append_produced(node.partitions, partition.key, batch(b"a"), required_acks=-1, now_ms=node.now_ms)
    answers: list[int] = []
    operation = DelayedProduce([part], node.partitions, node.now_ms + 1, lambda *_: answers.append(1))
    assert node.purgatory.try_complete_or_watch(operation, operation.keys(), node.now_ms)
    assert answers == [1]
