"""Streams groups (KIP-1071): topologies, epochs, tasks and their hand-over, standby copies, time, loading again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.coordinator.groups.epoch.epoch_member import MemberState
from tailrace.coordinator.groups.group import Committer, TopicCommit
from tailrace.coordinator.groups.streams.configured_topology import Status
from tailrace.coordinator.groups.streams.streams_member import Tasks
from tailrace.coordinator.groups.streams.streams_settings import StreamsSettings
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupTopologyValue
from tests.unit.coordinator.stream_threads import (
    ALL,
    CHANGELOG,
    COUNTING,
    GROUP,
    LINES,
    REPARTITION,
    SOON,
    Coordinator,
    Thread,
)

EVERYTHING = {("0", 0), ("0", 1), ("1", 0), ("1", 1)}


def run_pending(coordinator: Coordinator, *threads: Thread) -> None:
    for _ in range(6):
        for thread in threads:
            thread.heartbeat(coordinator)


def test_the_first_thread_gets_all_tasks():
    coordinator, a = Coordinator(ALL), Thread("a")
    a.heartbeat(coordinator)
    assert a.active == EVERYTHING
    assert (a.epoch, coordinator.group.epoch, coordinator.group.target_epoch) == (2, 2, 2)
    assert coordinator.group.state_name == "Stable"


def test_missing_internal_topics_are_requested_and_tasks_follow():
    coordinator, a = Coordinator({LINES: 3}), Thread("a")
    result = coordinator.heartbeat(a.beat())
    wanted = {topic.name: topic.partitions for topic in result.topics_to_create.values()}
    assert wanted == {REPARTITION: 3, CHANGELOG: 3}
    a.heartbeat(coordinator)
    assert a.statuses == (Status.MISSING_INTERNAL_TOPICS,)
    assert a.active == set()
    assert coordinator.group.state_name == "NotReady"
    coordinator.set_topics({LINES: 3, REPARTITION: 3, CHANGELOG: 3})
    a.heartbeat(coordinator)
    assert a.statuses == ()
    assert len(a.active) == 6


@pytest.mark.parametrize(
    ("topics", "status"),
    [
        ({}, Status.MISSING_SOURCE_TOPICS),
        ({LINES: 2, REPARTITION: 2, CHANGELOG: 5}, Status.INCORRECTLY_PARTITIONED_TOPICS),
        ({LINES: 2, REPARTITION: 3, CHANGELOG: 3}, Status.INCORRECTLY_PARTITIONED_TOPICS),
    ],
)
def test_topics_that_do_not_fit_are_reported_as_a_status(topics, status):
    coordinator, a = Coordinator(topics), Thread("a")
    a.heartbeat(coordinator)
    assert (a.statuses, a.active) == ((status,), set())


def test_a_task_is_assigned_to_another_member_only_after_it_was_revoked():
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    assert b.active == set()
    assert coordinator.group.members["b"].state is MemberState.UNRELEASED
    a.heartbeat(coordinator)
    assert len(a.active) == 2
    b.heartbeat(coordinator)
    assert b.active == set()
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    assert a.active | b.active == EVERYTHING
    assert not a.active & b.active


def test_standby_tasks_are_assigned_to_other_processes():
    settings = replace(SOON, standby_replicas=1)
    coordinator = Coordinator(ALL, settings)
    threads = [Thread("a1", "a"), Thread("a2", "a"), Thread("b1", "b")]
    run_pending(coordinator, *threads)
    of_a = threads[0].active | threads[1].active
    assert of_a | threads[2].active == EVERYTHING
    assert {task for task in threads[2].active if task[0] == "1"} == threads[0].standby | threads[1].standby
    assert threads[2].standby == {task for task in of_a if task[0] == "1"}
    coordinator.settings = SOON
    run_pending(coordinator, *threads)
    assert not any(thread.standby for thread in threads), "a change of the configuration counts at once"


def test_the_first_assignment_waits_for_the_initial_rebalance_delay():
    coordinator = Coordinator(ALL, StreamsSettings(assignment_interval_ms=0))
    a, b = Thread("a"), Thread("b")
    for thread in (a, b, a, b):
        thread.heartbeat(coordinator)
        assert (thread.active, thread.statuses) == (set(), (Status.ASSIGNMENT_DELAYED,))
    coordinator.advance(3_000)
    run_pending(coordinator, a, b)
    assert len(a.active) == len(b.active) == 2
    assert [member.previous_epoch for member in coordinator.group.members.values()] == [1, 1], "nobody had to let go"


def test_the_assignment_interval_limits_target_assignments():
    coordinator = Coordinator(ALL, StreamsSettings(initial_rebalance_delay_ms=0))
    a, b = Thread("a"), Thread("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    assert b.statuses == (Status.ASSIGNMENT_DELAYED,)
    coordinator.advance(1_000)
    b.heartbeat(coordinator)
    assert b.statuses == ()
    assert coordinator.group.state_name == "Reconciling"


def test_a_silent_member_is_fenced_and_others_get_its_tasks():
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    run_pending(coordinator, a, b)
    for _ in range(10):
        coordinator.advance(5_000)
        b.heartbeat(coordinator)
    assert b.active == EVERYTHING
    a.heartbeat(coordinator)
    assert a.epoch == 0


def test_a_member_that_does_not_revoke_in_time_is_fenced():
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    a.reports_all = False
    a.heartbeat(coordinator)
    for _ in range(13):
        coordinator.advance(5_000)
        if "a" in coordinator.group.members:
            coordinator.heartbeat(a.beat())
        b.heartbeat(coordinator)
    assert list(coordinator.group.members) == ["b"]
    assert b.active == EVERYTHING


def test_the_previous_epoch_is_accepted_after_a_lost_response():
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    a.heartbeat(coordinator)
    b.heartbeat(coordinator)
    a.heartbeat(coordinator)
    a.heartbeat(coordinator, is_answer_lost=True)
    a.heartbeat(coordinator)
    assert a.epoch == coordinator.group.epoch
    with pytest.raises(KafkaError) as caught:
        coordinator.heartbeat(a.beat()._replace(member_epoch=a.epoch + 1))
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_changed_topology_is_refused():
    coordinator, a = Coordinator(ALL), Thread("a")
    a.heartbeat(coordinator)
    other = StreamsGroupTopologyValue(epoch=0, subtopologies=COUNTING.subtopologies[:1])
    with pytest.raises(KafkaError, match="Topology updates are not supported yet"):
        coordinator.heartbeat(Thread("b").beat()._replace(topology=other))


def test_a_shutdown_request_stays_until_all_members_have_left():
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    run_pending(coordinator, a, b)
    coordinator.heartbeat(a.beat()._replace(member_epoch=-1, asks_shutdown=True))
    b.heartbeat(coordinator)
    assert b.statuses == (Status.SHUTDOWN_APPLICATION,)
    b.leave(coordinator)
    c = Thread("c")
    c.heartbeat(coordinator)
    assert c.statuses == ()


@pytest.mark.parametrize("compact", [False, True])
def test_another_coordinator_continues_from_the_log(compact):
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    run_pending(coordinator, a, b)
    before = {name: thread.active for name, thread in (("a", a), ("b", b))}
    epochs = (a.epoch, b.epoch, coordinator.group.epoch)
    coordinator.reload(compact=compact)
    run_pending(coordinator, a, b)
    assert {name: thread.active for name, thread in (("a", a), ("b", b))} == before
    assert (a.epoch, b.epoch, coordinator.group.epoch) == epochs
    coordinator.advance(44_000)
    a.heartbeat(coordinator)
    coordinator.advance(2_000)
    run_pending(coordinator, a)
    assert a.active == EVERYTHING, "b had a session, and did not use it"


def test_a_group_that_was_deleted_is_forgotten():
    coordinator, a = Coordinator(ALL), Thread("a")
    a.heartbeat(coordinator)
    assert coordinator.shard.delete_groups([GROUP]).response == [ErrorCode.NON_EMPTY_GROUP]
    a.leave(coordinator)
    change = coordinator.shard.delete_groups([GROUP])
    for record in change.records:
        coordinator.log.append(record)
        coordinator.shard.replay(record, -1, -1)
    assert GROUP not in coordinator.shard.groups
    coordinator.reload()
    assert GROUP not in coordinator.shard.groups


def test_commits_are_accepted_for_tasks_that_the_member_has_had_since_that_epoch():
    coordinator, a, b = Coordinator(ALL), Thread("a"), Thread("b")
    a.heartbeat(coordinator)
    first = a.epoch
    run_pending(coordinator, a, b)
    kept = sorted(number for name, number in a.active if name == "0")
    lost = sorted({0, 1} - set(kept))

    def commit(epoch: int, partition: int, topic: str = LINES) -> ErrorCode:
        topics = [TopicCommit(topic, bytes(16), [(partition, 5, -1, b"", -1)])]
        try:
            coordinator.group.check_offset_commit(Committer("a", None, epoch, version=9), topics)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    assert {commit(a.epoch, number) for number in (0, 1)} == {ErrorCode.NONE}
    assert {commit(first, number) for number in kept} <= {ErrorCode.NONE}
    assert {commit(first, number) for number in lost} <= {ErrorCode.STALE_MEMBER_EPOCH}
    assert kept or lost
    assert commit(first - 1, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(a.epoch + 1, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(first, 0, "elsewhere") is ErrorCode.STALE_MEMBER_EPOCH
    assert coordinator.group.is_subscribed_to(LINES)
    assert coordinator.group.is_subscribed_to(REPARTITION)
    assert not coordinator.group.is_subscribed_to(CHANGELOG)


def test_a_reported_task_outside_the_topology_is_refused():
    coordinator, a = Coordinator(ALL), Thread("a")
    a.heartbeat(coordinator)
    for odd in ({"nowhere": frozenset({0})}, {"0": frozenset({2})}):
        with pytest.raises(KafkaError) as caught:
            coordinator.heartbeat(a.beat()._replace(owned=Tasks(odd)))
        assert caught.value.code is ErrorCode.INVALID_REQUEST
