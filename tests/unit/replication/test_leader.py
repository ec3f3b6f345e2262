"""LeaderRole: what follows from the followers' fetches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.replication.leader import LeaderRole
from tailrace.replication.partition import Partition
from tests.simulation.node import NOW_MS, Node, broker, registration

LAG_MS = 30_000


class Led:
    """A partition of brokers 1 to 3, led by 1, with some of them in sync."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3), replicas: tuple[int, ...] = (1, 2, 3), **config: str) -> None:
        self.node = Node(replica_lag_time_max_ms=LAG_MS, broker_epoch=lambda: 101)
        self.node.know(*(broker(n) for n in (2, 3, 4)))
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.partition: Partition = self.node.host(
            state=registration(1, replicas, isr, leader_epoch=1, partition_epoch=1), config=settings
        )
        for value in (b"a", b"b", b"c", b"d"):
            self.node.append(self.partition, value)

    @property
    def leader(self) -> LeaderRole:
        assert self.partition.leader is not None
        return self.partition.leader

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    def fetched(
        self, broker_id: int, offset: int, *, log_start: int = 0, epoch: int | None = None, after_ms: int = 0
    ) -> bool:
        self.node.now_ms += after_ms
        log = self.partition.log
        place = log.marks.log_end._replace(offset=offset)
        return self.leader.note_fetch(
            self.leader.followers[broker_id],
            place,
            log_start,
            log.log_end_offset,
            100 + broker_id if epoch is None else epoch,
            self.node.now_ms,
        )


# High watermark


def test_the_high_watermark_is_the_smallest_log_end_of_the_isr() -> None:
    led = Led()
    assert led.high_watermark == 0
    led.fetched(2, 3)
    assert led.high_watermark == 0
    assert led.fetched(3, 2)
    assert led.high_watermark == 2
    assert led.fetched(3, 4)
    assert led.high_watermark == 3
    assert led.fetched(2, 4)
    assert led.high_watermark == 4


def test_a_replica_out_of_sync_does_not_hold_the_high_watermark() -> None:
    led = Led(isr=(1, 2))
    led.fetched(2, 4)
    assert led.high_watermark == 4
    led.fetched(3, 1)
    assert led.high_watermark == 4


def test_a_caught_up_replica_that_may_join_holds_the_high_watermark() -> None:
    """Otherwise a leader alone in its ISR runs ahead of a follower for good."""
    led = Led(isr=(1,), replicas=(1, 2))
    led.fetched(2, 2)
    led.node.image = replace(led.node.image, brokers={**led.node.image.brokers, 2: broker(2, fenced=True)})
    led.node.append(led.partition, b"e")
    assert led.high_watermark == 5  # a fenced broker holds nothing
    led.node.know(broker(2))
    led.fetched(2, 5)
    led.leader.isr.withdraw()
    led.node.append(led.partition, b"f")
    assert led.high_watermark == 5  # it was caught up just now
    led.node.now_ms += LAG_MS + 1
    led.node.append(led.partition, b"g")
    assert led.high_watermark == 7  # and is not any more


def test_a_joining_replica_counts_before_the_controller_has_accepted_it() -> None:
    led = Led(isr=(1,), replicas=(1, 2))
    led.fetched(2, 4)
    assert led.leader.isr.pending is not None
    led.node.now_ms += LAG_MS + 1  # not caught up by time any more: only the pending change holds it
    led.node.append(led.partition, b"e")
    assert led.high_watermark == 4


def test_a_leaving_replica_counts_until_the_controller_has_dropped_it() -> None:
    led = Led(isr=(1, 2), replicas=(1, 2))
    led.fetched(2, 1)
    led.node.now_ms += 2 * LAG_MS
    assert led.leader.isr_changes.shrink(led.node.now_ms)
    assert led.high_watermark == 1
    assert not led.leader.advance_high_watermark(led.node.now_ms)
    pending = led.leader.isr.pending
    assert pending is not None
    assert pending.leaving == {2}
    assert led.leader.isr_accepted(pending, (1,), 1, 2, led.node.now_ms)
    assert led.high_watermark == 4


def test_below_min_insync_replicas_the_high_watermark_does_not_move() -> None:
    led = Led(isr=(1,), min_insync_replicas="2")
    assert led.high_watermark == 0
    assert not led.leader.advance_high_watermark(NOW_MS)


# ISR


def test_a_replica_joins_when_it_reaches_the_high_watermark() -> None:
    led = Led(isr=(1, 2))
    led.fetched(2, 3)
    led.fetched(3, 2)
    assert led.leader.isr.pending is None
    led.fetched(3, 3)
    proposal = led.leader.isr.pending
    assert proposal is not None
    assert proposal.joining == {3}
    assert proposal.isr == ((1, 101), (2, 102), (3, 103))
    assert (proposal.leader, proposal.leader_epoch, proposal.partition_epoch) == (1, 1, 1)
    assert led.leader.isr.committed == {1, 2}
    assert led.leader.isr.maximal == {1, 2, 3}


def test_a_replica_must_reach_the_start_of_the_leader_epoch_to_join() -> None:
    """It may miss what an earlier leader committed, though this one's high watermark does not know that yet."""
    led = Led(isr=(1, 2))
    led.node.apply(led.partition, registration(1, (1, 2, 3), (1, 2), leader_epoch=2, partition_epoch=2))
    assert led.high_watermark == 0
    led.fetched(3, 3)
    assert led.leader.isr.pending is None
    led.fetched(3, 4)
    assert led.leader.isr.pending is not None


@pytest.mark.parametrize("why", ["fenced", "shutting down", "gone", "restarted"])
def test_a_replica_whose_broker_is_gone_fenced_restarted_or_shutting_down_does_not_join(why: str) -> None:
    led = Led(isr=(1, 2))
    led.fetched(2, 4)
    brokers = dict(led.node.image.brokers)
    if why == "gone":
        del brokers[3]
    elif why == "shutting down":
        brokers[3] = replace(broker(3), in_controlled_shutdown=True)
    else:
        brokers[3] = broker(3, fenced=why == "fenced", epoch=103 if why == "fenced" else 90)
    led.node.image = replace(led.node.image, brokers=brokers)
    led.fetched(3, 4)
    assert led.leader.isr.pending is None


def test_a_fetch_with_an_earlier_broker_epoch_is_refused() -> None:
    led = Led(isr=(1, 2))
    with pytest.raises(KafkaError, match="was restarted since") as refused:
        led.fetched(3, 4, epoch=50)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert led.leader.followers[3].log_end_offset == -1


def test_a_fetch_without_a_broker_epoch_can_join_the_isr() -> None:
    led = Led(isr=(1, 2))
    led.fetched(2, 4)
    led.fetched(3, 4, epoch=-1)
    assert led.leader.isr.pending is not None
    assert led.leader.isr.pending.isr == ((1, 101), (2, 102), (3, -1))


def test_only_one_isr_change_is_proposed_at_a_time() -> None:
    led = Led(isr=(1,))
    led.fetched(2, 4)
    first = led.leader.isr.pending
    led.fetched(3, 4)
    assert led.leader.isr.pending is first
    led.node.now_ms += 2 * LAG_MS
    assert led.leader.isr_changes.lagging(led.node.now_ms) == frozenset()
    assert not led.leader.isr_changes.shrink(led.node.now_ms)


def test_a_replica_is_dropped_when_it_was_not_caught_up_for_the_lag_time() -> None:
    led = Led()
    led.fetched(2, 4)
    led.fetched(3, 2)
    led.node.now_ms += LAG_MS
    assert led.leader.isr_changes.lagging(led.node.now_ms) == frozenset()
    led.node.now_ms += 1
    assert led.leader.isr_changes.lagging(led.node.now_ms) == {3}  # 2 is at the log end, however long ago it fetched
    led.node.append(led.partition, b"e")
    assert led.leader.isr_changes.lagging(led.node.now_ms) == {2, 3}
    assert led.leader.isr_changes.shrink(led.node.now_ms)
    assert led.leader.isr.pending is not None
    assert led.leader.isr.pending.isr == ((1, 101),)


def test_a_follower_that_reaches_each_previous_log_end_stays_in_sync() -> None:
    """Each fetch reaches what was the end at the fetch before."""
    led = Led(isr=(1, 2), replicas=(1, 2))
    for n in range(10):
        end = led.partition.log.log_end_offset
        led.node.append(led.partition, b"more")
        led.fetched(2, end, after_ms=LAG_MS // 2)
        assert led.leader.isr_changes.lagging(led.node.now_ms) == frozenset(), n


def test_an_isr_member_that_is_no_longer_a_replica_lags() -> None:
    led = Led(isr=(1, 2), replicas=(1, 2))
    led.leader.assign((1, 3), led.leader.followers)
    assert led.leader.isr_changes.lagging(led.node.now_ms) == {2}


# The controller's answers


def test_an_accepted_proposal_is_the_new_isr() -> None:
    led = Led(isr=(1,))
    led.fetched(2, 4)
    proposal = led.leader.isr.pending
    assert proposal is not None
    led.leader.isr_accepted(proposal, (1, 2), 1, 2, led.node.now_ms)
    assert led.leader._settings.isr_counts.expands == 1
    assert led.leader.isr.committed == {1, 2}
    assert led.leader.isr.pending is None
    assert led.leader.isr_changes.partition_epoch == 2


def test_a_response_older_than_the_metadata_is_ignored() -> None:
    led = Led(isr=(1,))
    led.fetched(2, 4)
    proposal = led.leader.isr.pending
    assert proposal is not None
    led.node.apply(led.partition, registration(1, (1, 2, 3), (1, 3), leader_epoch=1, partition_epoch=3))
    assert not led.leader.isr_accepted(proposal, (1, 2), 1, 2, led.node.now_ms)
    assert not led.leader.isr_changes.refuse(proposal, ErrorCode.REQUEST_TIMED_OUT)
    assert led.leader.isr.committed == {1, 3}


def test_metadata_that_the_response_contained_does_not_withdraw_a_later_proposal() -> None:
    """The controller may agree to what was proposed since; then the high watermark must have waited for it."""
    led = Led(isr=(1,))
    led.fetched(2, 4)
    first = led.leader.isr.pending
    assert first is not None
    led.leader.isr_accepted(first, (1, 2), 1, 2, led.node.now_ms)
    led.fetched(3, 4)
    second = led.leader.isr.pending
    assert second is not None
    led.node.apply(led.partition, registration(1, (1, 2, 3), (1, 2), leader_epoch=1, partition_epoch=2))
    assert led.leader.isr.pending is second
    assert led.leader.isr.maximal == {1, 2, 3}
    led.node.append(led.partition, b"e")
    led.fetched(2, 5, after_ms=LAG_MS + 1)  # so 3 no longer counts as caught up
    assert led.high_watermark == 4


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(2, 2), (1, 0)])
def test_an_answer_of_another_epoch_is_ignored(leader_epoch: int, partition_epoch: int) -> None:
    led = Led(isr=(1,))
    led.fetched(2, 4)
    proposal = led.leader.isr.pending
    assert proposal is not None
    assert not led.leader.isr_accepted(proposal, (1, 2), leader_epoch, partition_epoch, led.node.now_ms)
    assert led.leader.isr.committed == {1}
    assert led.leader.isr.pending is proposal


@pytest.mark.parametrize(
    ("error", "withdrawn", "retried"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, True, False),
        (ErrorCode.INELIGIBLE_REPLICA, True, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, False, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, False),
        (ErrorCode.INVALID_REQUEST, False, False),
        (ErrorCode.NEW_LEADER_ELECTED, False, False),
        (ErrorCode.REQUEST_TIMED_OUT, False, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False, True),
    ],
)
def test_a_refusal_is_retried_or_dropped_by_its_error(error: ErrorCode, withdrawn: bool, retried: bool) -> None:
    led = Led(isr=(1,))
    led.fetched(2, 4)
    proposal = led.leader.isr.pending
    assert proposal is not None
    assert led.leader.isr_changes.refuse(proposal, error) == retried
    assert (led.leader.isr.pending is None) == withdrawn
    assert led.leader.isr.committed == {1}


# Low watermark


def test_the_low_watermark_is_the_smallest_log_start_of_the_live_replicas() -> None:
    led = Led()
    assert led.fetched(2, 4, log_start=3)
    assert led.fetched(3, 4, log_start=2)
    led.partition.delete_records(4, led.node.now_ms)
    assert led.leader.low_watermark() == 2
    assert led.fetched(3, 4, log_start=4)
    assert led.leader.low_watermark() == 3
    led.node.know(broker(2, fenced=True))
    assert led.leader.low_watermark() == 4


def test_a_repeated_fetch_at_the_same_offset_moves_no_watermark() -> None:
    led = Led()
    led.fetched(2, 4)
    led.fetched(3, 4)
    assert not led.fetched(2, 4)
