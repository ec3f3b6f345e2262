"""F12: the preferred read replica."""

from __future__ import annotations

import pytest

from tailrace.fetch.preferred_replica import RACK_AWARE, ReplicaView, rack_aware, selector_of
from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig
from tests.simulation.node import Consumer, Node, broker, bytes_of, registration, want


def view(broker_id: int, rack: str | None, end: int = 10, ms: int = 0) -> ReplicaView:
    return ReplicaView(broker_id, rack, end, ms)


def test_f12_a_leader_in_the_clients_rack_is_selected() -> None:
    leader = view(1, "a")
    assert rack_aware("a", [view(2, "a", 99), leader], leader) == leader


def test_f12_the_leader_is_selected_if_no_replica_is_in_the_clients_rack() -> None:
    leader = view(1, "a")
    for rack in ("c", ""):
        assert rack_aware(rack, [view(2, "b"), leader, view(3, None)], leader) == leader


def test_f12_the_most_caught_up_replica_is_selected_by_log_end_time_and_id() -> None:
    leader = view(1, "a")
    others = [view(2, "b", 9, 0), view(3, "b", 10, 50), view(4, "b", 10, 20), view(5, "b", 10, 20), view(6, "c", 99)]
    assert rack_aware("b", [*others, leader], leader).broker_id == 5
    assert rack_aware("b", [*others[:3], leader], leader).broker_id == 4
    assert rack_aware("b", [*others[:2], leader], leader).broker_id == 3


class Racks:
    """Brokers 1 (leader, rack a), 2 (rack b), 3 (rack c)."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.node = Node(select_replica=rack_aware)
        self.node.know(broker(1, rack="a"), broker(2, rack="b"), broker(3, rack="c"))
        self.partition = self.node.host(state=registration(1, (1, 2, 3), isr))
        for _ in range(4):
            self.node.append(self.partition, b"x")
        self.follow(2, 4)
        self.follow(3, 4)
        assert self.partition.log.high_watermark == 4

    def follow(self, broker_id: int, offset: int, log_start: int = 0) -> None:
        self.node.fetch(
            [want(self.partition, offset, log_start=log_start)], replica=broker_id, replica_epoch=100 + broker_id
        )

    def asks(self, rack: str, offset: int = 0, **fields):  # type: ignore[no-untyped-def]
        return self.node.fetch([want(self.partition, offset)], rack_id=rack, **fields)


def test_f12_a_redirected_consumer_gets_no_records_and_does_not_wait() -> None:
    """KAFKA-13767: the fetch must not wait for records that the client reads from another replica."""
    racks = Racks()
    asked = racks.asks("b", 4, max_wait_ms=500)
    assert not asked.is_waiting
    answer = asked.only
    assert (answer.preferred_read_replica, answer.error_code, bytes_of(answer)) == (2, ErrorCode.NONE, b"")
    assert (answer.high_watermark, answer.log_start_offset, answer.last_stable_offset) == (4, 0, 4)


def test_f12_consumers_in_the_leaders_rack_in_none_or_an_unknown_one_stay() -> None:
    racks = Racks()
    for rack in ("a", "z", ""):
        answer = racks.asks(rack).only
        assert answer.preferred_read_replica == -1
        assert bytes_of(answer)


def test_f12_replicas_without_the_offset_are_not_selected() -> None:
    racks = Racks()
    racks.node.append(racks.partition, b"y")
    racks.follow(2, 5, log_start=2)
    for offset, expected in ((1, -1), (2, 2), (5, 2)):
        assert racks.asks("b", offset).only.preferred_read_replica == expected
    assert racks.asks("c", 4).only.preferred_read_replica == 3
    assert racks.asks("c", 5).only.preferred_read_replica == -1


def test_f12_replicas_out_of_sync_are_not_selected() -> None:
    racks = Racks()
    racks.node.apply(racks.partition, registration(1, (1, 2, 3), (1, 3), partition_epoch=1))
    assert racks.asks("b").only.preferred_read_replica == -1


def test_f12_replicas_on_unreachable_brokers_are_not_selected() -> None:
    racks = Racks()
    racks.node.know(broker(2, rack="b", fenced=True))
    assert racks.asks("b").only.preferred_read_replica == -1


def test_f12_a_follower_does_not_redirect_consumers() -> None:
    racks = Racks()
    racks.node.apply(racks.partition, registration(3, (1, 2, 3), leader_epoch=1, partition_epoch=1))
    answer = racks.asks("b").only
    assert answer.preferred_read_replica == -1
    assert bytes_of(answer)


def test_f12_followers_are_not_redirected() -> None:
    racks = Racks()
    asked = racks.node.fetch([want(racks.partition, 0)], replica=2, replica_epoch=102, rack_id="b")
    assert asked.only.preferred_read_replica == -1


def test_f12_versions_before_11_are_not_redirected() -> None:
    racks = Racks()
    assert bytes_of(racks.asks("b", version=10).only)


def test_f12_the_leader_epoch_is_checked_before_the_redirect() -> None:
    racks = Racks()
    asked = racks.node.fetch([want(racks.partition, 0, epoch=9)], rack_id="b")
    assert asked.only.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_f12_an_incremental_response_has_the_preferred_replica() -> None:
    racks = Racks()
    consumer = Consumer(racks.node, [want(racks.partition, 4)], rack_id="b", max_wait_ms=500)
    for _ in range(3):
        assert consumer.poll().only.preferred_read_replica == 2


def test_f12_a_session_is_redirected_once_a_replica_qualifies() -> None:
    racks = Racks()
    racks.node.know(broker(2, rack="b", fenced=True))
    consumer = Consumer(racks.node, [want(racks.partition, 4)], rack_id="b")
    assert consumer.poll().only.preferred_read_replica == -1
    assert consumer.poll().partitions == {}
    racks.node.know(broker(2, rack="b"))
    assert consumer.poll().only.preferred_read_replica == 2


def test_f12_without_a_selector_all_consumers_read_from_the_leader() -> None:
    node = Node()
    node.know(broker(1, rack="a"), broker(2, rack="b"))
    partition = node.host(state=registration(1, (1, 2)))
    node.append(partition, b"x")
    node.fetch([want(partition, 1)], replica=2, replica_epoch=102)
    assert bytes_of(node.fetch([want(partition, 0)], rack_id="b").only)


def follower(racks: Racks, broker_id: int, offset: int) -> Consumer:
    """Return a follower's session whose position is the high watermark and which has received it."""
    wants = [want(racks.partition, offset, log_start=0)]
    made = Consumer(racks.node, wants, replica=broker_id, replica_epoch=100 + broker_id, max_wait_ms=500)
    assert made.poll(max_wait_ms=0).only.high_watermark == racks.partition.log.high_watermark
    return made


def test_a_waiting_follower_gets_a_new_high_watermark_at_once() -> None:
    racks = Racks()
    two, three = follower(racks, 2, 4), follower(racks, 3, 4)
    racks.node.append(racks.partition, b"y")
    for one in (two, three):
        assert bytes_of(one.poll().only)
    two.changed = {("topic", 0): want(racks.partition, 5, log_start=0)}
    waiting = two.poll()
    assert waiting.is_waiting  # the high watermark has not moved
    three.changed = {("topic", 0): want(racks.partition, 5, log_start=0)}
    asked = three.poll()  # this fetch advances the high watermark
    assert (asked.is_waiting, asked.only.high_watermark) == (False, 5)
    assert (waiting.is_waiting, waiting.only.high_watermark) == (False, 5)
    for one in (two, three):
        assert one.poll().is_waiting  # each high watermark is sent once


def test_a_follower_whose_log_ends_before_the_high_watermark_keeps_waiting() -> None:
    racks = Racks()
    two = follower(racks, 2, 4)
    racks.node.append(racks.partition, b"y")
    racks.partition.log.advance_high_watermark(5)
    assert two.poll(min_bytes=1_000_000).is_waiting  # its log ends at 4


def test_only_kafkas_rack_aware_selector_class_is_supported() -> None:
    assert selector_of(None) is None
    assert selector_of(RACK_AWARE) is rack_aware
    with pytest.raises(InvalidConfig, match=r"replica\.selector\.class com\.example\.Mine is not supported"):
        selector_of("com.example.Mine")
