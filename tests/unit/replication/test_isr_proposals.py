"""IsrProposals: what leaders propose goes to the controller until it is decided, by its answer or by newer metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from tailrace.replication.isr.isr_proposals import RETRY_MS, IsrProposals
from tailrace.replication.leader import LeaderRole
from tailrace.waiting.outbox import Answered, Failed, Failure
from tests.simulation.node import NOW_MS, Node, broker, registration

LAG_MS = 10_000


class Led:
    """Two partitions of brokers 1 and 2, led by 1, which is alone in sync; the controller is the test."""

    def __init__(self, isr: tuple[int, ...] = (1,)) -> None:
        self.node = Node(replica_lag_time_max_ms=LAG_MS, broker_epoch=lambda: 101)
        self.node.know(broker(2))
        self.asked: list[tuple[Sequence[AlterPartitionRequest.TopicData], Answered, Failed]] = []
        self.moved: list[TopicPartition] = []
        self.proposals = IsrProposals(
            self, self.node.partitions, lambda key, _: self.moved.append(key), lag_ms_max=LAG_MS, now_ms=NOW_MS
        )
        self.node.settings.on_proposal = self.proposals.propose
        state = registration(1, (1, 2), isr, leader_epoch=1, partition_epoch=1)
        self.partitions = [self.node.host(index=index, state=state) for index in range(2)]

    def alter_partition(
        self, topics: Sequence[AlterPartitionRequest.TopicData], answered: Answered, failed: Failed, now_ms: int
    ) -> None:
        self.asked.append((topics, answered, failed))

    def leader(self, index: int = 0) -> LeaderRole:
        leader = self.partitions[index].leader
        assert leader is not None
        return leader

    def caught_up(self, index: int = 0) -> None:
        leader, log = self.leader(index), self.partitions[index].log
        leader.note_fetch(leader.followers[2], log.marks.log_end, 0, log.log_end_offset, 102, self.node.now_ms)

    def tick(self, after_ms: int = 0) -> None:
        self.node.now_ms += after_ms
        self.proposals.tick(self.node.now_ms)

    def answer(self, *partitions: AlterPartitionResponse.PartitionData, error: ErrorCode = ErrorCode.NONE) -> None:
        _, answered, _ = self.asked[-1]
        topic = AlterPartitionResponse.TopicData(topic_id=self.partitions[0].topic_id, partitions=list(partitions))
        answered(AlterPartitionResponse(error_code=error, topics=[topic]), self.node.now_ms)

    @property
    def last(self) -> list[Any]:
        """Return the proposals of the last request: (partition, members with their epochs)."""
        ((topic,), _, _) = self.asked[-1]
        return [
            (one.partition_index, [(member.broker_id, member.broker_epoch) for member in one.new_isr_with_epochs])
            for one in topic.partitions
        ]


def decided(index: int, *isr: int, epoch: int = 2, error: ErrorCode = ErrorCode.NONE) -> Any:
    return AlterPartitionResponse.PartitionData(
        partition_index=index, error_code=error, leader_id=1, leader_epoch=1, isr=list(isr), partition_epoch=epoch
    )


def test_proposals_of_a_round_are_sent_in_one_request_with_broker_epochs() -> None:
    led = Led()
    led.caught_up(0)
    led.caught_up(1)
    assert led.asked == []
    assert led.proposals.next_deadline_ms() == 0
    led.tick()
    assert led.last == [(0, [(1, 101), (2, 102)]), (1, [(1, 101), (2, 102)])]
    led.tick()
    assert len(led.asked) == 1
    led.answer(decided(0, 1, 2), decided(1, 1, 2))
    assert led.leader(0).isr.committed == led.leader(1).isr.committed == {1, 2}
    led.tick()
    assert len(led.asked) == 1


def test_later_proposals_are_sent_with_the_next_request() -> None:
    led = Led()
    led.caught_up(0)
    led.tick()
    led.caught_up(1)
    led.tick()
    assert len(led.asked) == 1
    led.answer(decided(0, 1, 2))
    led.tick()
    assert led.last == [(1, [(1, 101), (2, 102)])]


def test_a_lagging_follower_is_dropped_and_the_high_watermark_advances() -> None:
    led = Led(isr=(1, 2))
    led.node.append(led.partitions[0], b"a")
    led.tick(LAG_MS // 2)
    assert led.asked == []
    led.tick(LAG_MS // 2)
    assert led.asked == []  # it was caught up just within its time
    led.tick(LAG_MS // 2)
    assert (0, [(1, 101)]) in led.last
    led.answer(decided(0, 1), decided(1, 1))
    assert led.partitions[0].log.high_watermark == 1
    assert led.partitions[0].key in led.moved


@pytest.mark.parametrize("how", ["no answer", "refused as a whole", "left out", "refused for now"])
def test_an_undecided_proposal_is_sent_again(how: str) -> None:
    led = Led()
    led.caught_up()
    led.tick()
    if how == "no answer":
        led.asked[-1][2](Failure.LOST, led.node.now_ms)
    elif how == "refused as a whole":
        led.answer(error=ErrorCode.STALE_BROKER_EPOCH)
    elif how == "left out":
        led.answer()
    else:
        led.answer(decided(0, error=ErrorCode.REQUEST_TIMED_OUT))
    led.tick()
    assert len(led.asked) == 1
    assert led.proposals.next_deadline_ms() == led.node.now_ms + RETRY_MS
    led.tick(RETRY_MS)
    assert len(led.asked) == 2
    led.answer(decided(0, 1, 2))
    assert led.leader().isr.committed == {1, 2}


def test_a_proposal_decided_by_newer_metadata_is_not_sent_again() -> None:
    led = Led()
    led.caught_up()
    led.tick()
    led.node.apply(led.partitions[0], registration(1, (1, 2), (1,), leader_epoch=1, partition_epoch=5))
    led.answer(decided(0, error=ErrorCode.REQUEST_TIMED_OUT))
    led.tick(RETRY_MS)
    assert len(led.asked) == 1
    assert led.leader().isr.committed == {1}


def test_an_answer_that_comes_after_newer_metadata_changes_nothing() -> None:
    led = Led()
    led.caught_up()
    led.tick()
    led.node.apply(led.partitions[0], registration(1, (1, 2), (1,), leader_epoch=1, partition_epoch=5))
    led.answer(decided(0, 1, 2))
    assert led.leader().isr.committed == {1}


def test_a_replica_that_may_not_join_is_proposed_again_with_its_next_fetch() -> None:
    led = Led()
    led.caught_up()
    led.tick()
    led.answer(decided(0, error=ErrorCode.INELIGIBLE_REPLICA))
    led.tick(RETRY_MS)
    assert len(led.asked) == 1
    led.caught_up()
    led.tick()
    assert len(led.asked) == 2
