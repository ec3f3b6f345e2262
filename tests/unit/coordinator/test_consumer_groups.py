"""Consumer groups (KIP-848): epochs, shares, hand-over, fencing, static members, patterns, loading again."""

from __future__ import annotations

import pytest

from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.consumer.pattern_subscriptions import PATTERN_REFRESH_MS_MIN, SLICE_INTERVAL_MS
from tailrace.coordinator.groups.consumer.topic_patterns import PatternLookup, check_pattern
from tailrace.coordinator.groups.epoch.epoch_member import MemberState
from tailrace.coordinator.groups.group import all_visible
from tailrace.model.errors import ErrorCode, KafkaError
from tests.unit.coordinator.consumers import GROUP, Consumer, Coordinator, topic_id


def test_a_member_alone_gets_everything():
    coordinator, a = Coordinator({"t": 3}), Consumer("a")
    a.heartbeat(coordinator)
    assert a.owned == {(topic_id("t"), number) for number in range(3)}
    assert (a.epoch, coordinator.group.epoch, coordinator.group.target_epoch) == (2, 2, 2)
    assert coordinator.group.state_name == "Stable"


def test_a_partition_is_assigned_to_another_member_only_after_it_was_revoked():
    coordinator, a, b = Coordinator({"t": 2}), Consumer("a"), Consumer("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    assert b.owned == set()
    assert coordinator.group.members[b.member_id].state is MemberState.UNRELEASED
    a.heartbeat(coordinator)  # has to revoke one
    assert len(a.owned) == 1
    b.heartbeat(coordinator)  # nothing yet: a has not confirmed it
    assert b.owned == set()
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    assert len(b.owned) == 1
    assert not a.owned & b.owned
    assert coordinator.group.state_name == "Stable"


def test_a_member_that_does_not_revoke_in_time_is_fenced():
    coordinator, a, b = Coordinator({"t": 2}), Consumer("a"), Consumer("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    a.reports_all = False
    a.heartbeat(coordinator)
    for _ in range(13):
        coordinator.advance(5_000)
        coordinator.heartbeat(a.beat()) if a.member_id in coordinator.group.members else None
        b.heartbeat(coordinator)
    assert list(coordinator.group.members) == [b.member_id]
    assert len(b.owned) == 2


def test_a_silent_member_is_fenced_and_others_get_its_partitions():
    coordinator, a, b = Coordinator({"t": 4}), Consumer("a"), Consumer("b")
    for consumer in (a, b, a, b, a, b):
        consumer.heartbeat(coordinator)
    assert len(b.owned) == 2
    for _ in range(10):
        coordinator.advance(5_000)
        b.heartbeat(coordinator)
    assert len(b.owned) == 4
    a.heartbeat(coordinator)
    assert a.epoch == 0  # unknown: it has to join again


@pytest.mark.parametrize(("epoch", "code"), [(9, ErrorCode.FENCED_MEMBER_EPOCH), (1, ErrorCode.FENCED_MEMBER_EPOCH)])
def test_a_heartbeat_with_another_epoch_is_fenced(epoch, code):
    coordinator, a = Coordinator({"t": 2}), Consumer("a")
    a.heartbeat(coordinator)
    with pytest.raises(KafkaError) as caught:
        coordinator.heartbeat(a.beat()._replace(member_epoch=epoch))
    assert caught.value.code is code


def test_the_previous_epoch_is_accepted_after_a_lost_response():
    coordinator, a, b = Coordinator({"t": 2}), Consumer("a"), Consumer("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    a.heartbeat(coordinator)
    a.heartbeat(coordinator, is_answer_lost=True)  # moves to the new epoch, and does not get the response
    a.heartbeat(coordinator)
    assert a.epoch == coordinator.group.epoch
    assert len(a.owned) == 1


def test_new_and_deleted_partitions_and_topics_change_the_assignment():
    coordinator, a = Coordinator({"t": 1}), Consumer("a", topics=("t", "later"))
    a.heartbeat(coordinator)
    coordinator.set_topics({"t": 3})
    a.heartbeat(coordinator)
    assert len(a.owned) == 3
    coordinator.set_topics({"t": 3, "later": 2})
    a.heartbeat(coordinator)
    assert len(a.owned) == 5
    coordinator.set_topics({"later": 2})
    a.heartbeat(coordinator)
    a.heartbeat(coordinator)
    assert a.owned == {(topic_id("later"), 0), (topic_id("later"), 1)}


def test_the_assignment_interval_limits_target_assignments():
    coordinator = Coordinator({"t": 2}, ConsumerSettings(assignment_interval_ms=1_000))
    a, b = Consumer("a"), Consumer("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    assert coordinator.group.state_name == "Assigning"
    coordinator.advance(1_000)
    b.heartbeat(coordinator)
    assert coordinator.group.state_name == "Reconciling"


def test_a_returning_static_member_keeps_its_partitions():
    coordinator = Coordinator({"t": 4})
    a, b = Consumer("a", instance_id="one"), Consumer("b")
    for consumer in (a, b, a, b, a, b):
        consumer.heartbeat(coordinator)
    had = set(a.owned)
    epoch = coordinator.group.epoch
    a.leave(coordinator, epoch=-2)
    again = Consumer("a2", instance_id="one")
    again.heartbeat(coordinator)
    assert again.owned == had
    assert coordinator.group.epoch == epoch
    with pytest.raises(KafkaError) as caught:
        coordinator.heartbeat(a.beat()._replace(member_epoch=epoch))
    assert caught.value.code is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_id_in_use_is_refused():
    coordinator, a = Coordinator({"t": 1}), Consumer("a", instance_id="one")
    a.heartbeat(coordinator)
    with pytest.raises(KafkaError) as caught:
        coordinator.heartbeat(Consumer("b", instance_id="one", member_id="other").beat())
    assert caught.value.code is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_pattern_subscription_gets_matching_topics_also_later_ones():
    coordinator = Coordinator({"orders-1": 1, "orders-2": 1, "other": 1})
    a = Consumer("a", topics=(), pattern="orders-.*")
    a.heartbeat(coordinator)
    assert a.owned == set()
    coordinator.advance(0)
    a.heartbeat(coordinator)
    assert a.owned == {(topic_id("orders-1"), 0), (topic_id("orders-2"), 0)}
    coordinator.set_topics({"orders-1": 1, "orders-2": 1, "orders-3": 1})
    coordinator.advance(20_000)
    a.heartbeat(coordinator)
    coordinator.advance(0)
    a.heartbeat(coordinator)
    assert len(a.owned) == 3


def test_a_topic_created_between_heartbeats_joins_a_pattern_subscription():
    coordinator = Coordinator({"orders-1": 1})
    a = Consumer("a", topics=(), pattern="orders-.*")
    a.heartbeat(coordinator)
    coordinator.advance(0)
    coordinator.set_topics({"orders-1": 1, "orders-2": 1})
    waited_ms = 0
    while len(a.owned) < 2 and waited_ms < 60_000:
        a.heartbeat(coordinator)
        coordinator.advance(1_000)
        waited_ms += 1_000
    assert a.owned == {(topic_id("orders-1"), 0), (topic_id("orders-2"), 0)}
    assert waited_ms <= PATTERN_REFRESH_MS_MIN + 3_000


def test_a_metadata_change_without_a_new_topic_does_not_repeat_a_pattern_lookup():
    coordinator = Coordinator({"orders-1": 1, "orders-2": 1})
    a = Consumer("a", topics=(), pattern="orders-.*")
    a.heartbeat(coordinator)
    coordinator.advance(0)
    resolved = coordinator.group.patterns["orders-.*"]
    coordinator.set_topics({"orders-1": 3})
    for _ in range(30):
        coordinator.advance(1_000)
        a.heartbeat(coordinator)
    assert coordinator.group.patterns["orders-.*"] == resolved
    assert len(a.owned) == 3


def test_a_second_pattern_is_looked_up_once_the_first_is_ten_seconds_old():
    coordinator = Coordinator({"orders": 1, "bills": 1})
    a, b = Consumer("a", topics=(), pattern="orders"), Consumer("b", topics=(), pattern="bills")
    a.heartbeat(coordinator)
    coordinator.advance(0)
    b.heartbeat(coordinator)
    coordinator.advance(PATTERN_REFRESH_MS_MIN)
    b.heartbeat(coordinator)
    assert coordinator.group.patterns.keys() == {"orders"}
    coordinator.advance(1)
    b.heartbeat(coordinator)
    coordinator.advance(0)
    assert coordinator.group.patterns.keys() == {"orders", "bills"}


def test_a_pattern_lookup_among_many_topics_is_done_in_slices():
    coordinator = Coordinator(dict.fromkeys((f"t{number}" for number in range(2_500)), 1))
    asked: list[str] = []

    def is_visible(name: str) -> bool:
        asked.append(name)
        return name != "t7"

    a = Consumer("a", topics=(), pattern="t.*")
    coordinator.heartbeat(a.beat()._replace(is_visible=is_visible, member_id="a"))
    slices = []
    while not coordinator.group.patterns:
        coordinator.advance(SLICE_INTERVAL_MS)
        slices.append(len(asked))
        asked.clear()
    assert slices == [1_000, 1_000, 500]
    assert len(coordinator.group.patterns["t.*"].topics) == 2_499


def test_the_cost_of_a_pattern_shortens_the_slices_of_its_lookup():
    names = ["0" * (180 + number) for number in range(20)]
    costly = "((0?1?2?3?){100}){7}"
    lookup = PatternLookup({costly}, names, all_visible)
    count = sum(1 for _ in iter(lookup.run_slice, True))
    assert count == 9  # two of the twenty names each
    assert lookup.found[costly] == set(names)


def test_a_pattern_with_too_large_a_program_is_refused():
    with pytest.raises(KafkaError, match="8192") as caught:
        check_pattern("((0?1?2?3?){100}){9}")
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_epoch_that_was_not_written_is_computed_again():
    coordinator, a = Coordinator({"t": 1}), Consumer("a")
    a.heartbeat(coordinator)
    coordinator.set_topics({"t": 2})
    lost = coordinator.shard.consumer_heartbeat(a.beat(), coordinator.now_ms)  # the append fails: nothing is replayed
    assert lost.records
    a.heartbeat(coordinator)
    assert len(a.owned) == 2


def test_an_invalid_pattern_is_refused():
    with pytest.raises(KafkaError) as caught:
        Coordinator({}).heartbeat(Consumer("a", topics=(), pattern="a(", member_id="m").beat())
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_full_group_refuses_new_members():
    coordinator = Coordinator({"t": 1}, ConsumerSettings(size_max=1))
    Consumer("a").heartbeat(coordinator)
    with pytest.raises(KafkaError) as caught:
        coordinator.heartbeat(Consumer("b", member_id="b").beat())
    assert caught.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_without_members_can_be_deleted():
    coordinator, a = Coordinator({"t": 1}), Consumer("a")
    a.heartbeat(coordinator)
    assert coordinator.shard.delete_groups([GROUP]).response == [ErrorCode.NON_EMPTY_GROUP]
    a.leave(coordinator)
    assert coordinator.group.state_name == "Empty"
    change = coordinator.shard.delete_groups([GROUP])
    for record in change.records:
        coordinator.shard.replay(record, -1, -1)
    assert GROUP not in coordinator.shard.groups


@pytest.mark.parametrize("compact", [False, True])
def test_a_reload_from_the_log_restores_the_whole_group(compact):
    coordinator, a, b = Coordinator({"t": 4}), Consumer("a"), Consumer("b", instance_id="two")
    for consumer in (a, b, a):
        consumer.heartbeat(coordinator)
    before = coordinator.group
    coordinator.reload(compact=compact)
    after = coordinator.group
    assert after is not before
    assert (after.members, after.target, after.epoch, after.target_epoch, after.static_members) == (
        before.members,
        before.target,
        before.epoch,
        before.target_epoch,
        before.static_members,
    )
    for consumer in (a, b, a, b):
        consumer.heartbeat(coordinator)
    assert len(a.owned) == len(b.owned) == 2
