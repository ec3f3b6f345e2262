"""The engine of epoch groups: records of each kind, the epoch check, reconciliation steps and member timers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ClassicMetadata, ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_records import CONSUMER_RECORDS
from tailrace.coordinator.groups.epoch.epoch_member import MemberState, check_epoch
from tailrace.coordinator.groups.epoch.member_timers import MemberTimers
from tailrace.coordinator.groups.epoch.reconciliation import difference
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_records import SHARE_RECORDS
from tailrace.coordinator.groups.streams.streams_member import Endpoint, HeldTasks, StreamsMember, Tasks
from tailrace.coordinator.groups.streams.streams_records import STREAMS_RECORDS
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.timers import Timers
from tailrace.model.errors import ErrorCode, KafkaError

TOPIC, OTHER = b"t" * 16, b"o" * 16

CONSUMER = ConsumerMember(
    "a",
    member_epoch=5,
    previous_epoch=4,
    state=MemberState.UNREVOKED,
    rack_id="rack",
    client_id="client",
    client_host="/host",
    instance_id="i",
    rebalance_timeout_ms=7,
    server_assignor="range",
    topic_names=frozenset({"x", "y"}),
    topic_pattern="z.*",
    classic=ClassicMetadata(9, (("range", b"metadata"),)),
    assigned={TOPIC: {0: 5, 1: 3}},
    to_revoke={OTHER: {2: 1}},
)
SHARE = ShareMember(
    "a", member_epoch=5, previous_epoch=4, topic_names=frozenset({"x", "y"}), assigned={TOPIC: frozenset({1, 2})}
)
STREAMS = StreamsMember(
    "a",
    member_epoch=5,
    previous_epoch=4,
    state=MemberState.UNRELEASED,
    rebalance_timeout_ms=7,
    topology_epoch=1,
    process_id="p",
    user_endpoint=Endpoint("host", 9),
    client_tags={"zone": "b"},
    assigned=HeldTasks({"0": {0: 5}}, {"1": frozenset({1})}, {"1": frozenset({2})}),
    to_revoke=HeldTasks({"0": {3: 2}}, {}, {}),
)
TARGET = {TOPIC: frozenset({0, 3})}
TASKS = Tasks({"0": frozenset({0})}, {"1": frozenset({1})}, {})

KINDS = [
    pytest.param(CONSUMER_RECORDS, CONSUMER, TARGET, id="consumer"),
    pytest.param(SHARE_RECORDS, SHARE, TARGET, id="share"),
    pytest.param(STREAMS_RECORDS, STREAMS, TASKS, id="streams"),
]


@pytest.mark.parametrize(("records", "member", "target"), KINDS)
def test_a_member_is_read_as_it_was_written(records: Any, member: Any, target: Any) -> None:
    written = (records.member_record("g", member).value, records.current_record("g", member).value)
    read = records.with_current(records.with_metadata(records.new_member("a"), written[0]), written[1])
    assert read == member
    assert records.read_target(records.target_record("g", "a", target).value) == target


@pytest.mark.parametrize(("records", "member", "target"), KINDS)
def test_every_state_is_read_as_it_was_written(records: Any, member: Any, target: Any) -> None:
    for state in MemberState:
        written = records.current_record("g", replace(member, state=state)).value
        assert records.with_current(member, written).state is state


@pytest.mark.parametrize(("records", "member", "target"), KINDS)
def test_a_state_of_a_later_kafka_is_unknown(records: Any, member: Any, target: Any) -> None:
    written = records.current_record("g", member).value
    written.state = 99
    assert records.with_current(member, written).state is MemberState.UNKNOWN


@pytest.mark.parametrize(("records", "member", "target"), KINDS)
def test_tombstones_of_members_come_after_those_of_their_assignments(records: Any, member: Any, target: Any) -> None:
    messages = records.messages
    found = [(type(record.key), record.value) for record in records.members_tombstones("g", ["a", "b"])]
    assert found == [
        *[(messages.current.key, None)] * 2,
        *[(messages.target.key, None)] * 2,
        (messages.target_epoch.key, None),
        *[(messages.member.key, None)] * 2,
    ]


def test_a_heartbeat_without_changes_returns_the_same_member() -> None:
    assert CONSUMER.with_reported(client_id="client", rack_id=None, topic_names=frozenset({"y", "x"})) is CONSUMER
    assert CONSUMER.with_reported(client_id="other").client_id == "other"


# Epochs


def test_a_heartbeat_in_the_previous_epoch_is_current_if_the_member_owns_only_what_it_was_assigned() -> None:
    check_epoch("consumer", CONSUMER, 5, lambda: False)
    check_epoch("consumer", CONSUMER, 4, lambda: True)
    check_epoch("share", SHARE, 4)
    with pytest.raises(KafkaError) as caught:
        check_epoch("consumer", CONSUMER, 4, lambda: False)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(("epoch", "word"), [(6, "greater"), (3, "smaller")])
def test_a_heartbeat_in_another_epoch_is_fenced(epoch: int, word: str) -> None:
    with pytest.raises(KafkaError, match=f"has a {word} member epoch \\({epoch}\\)"):
        check_epoch("streams", STREAMS, epoch, lambda: True)


# Reconciliation

PARTITIONS = st.dictionaries(st.sampled_from(["0", "1"]), st.sets(st.integers(0, 4), min_size=1))


@given(PARTITIONS, PARTITIONS, st.sets(st.tuples(st.sampled_from(["0", "1"]), st.integers(0, 4))))
def test_a_step_never_assigns_what_another_member_has(
    current: dict[str, set[int]], target: dict[str, set[int]], held: set[tuple[str, int]]
) -> None:
    epochs = {name: dict.fromkeys(numbers, 1) for name, numbers in current.items()}
    step = difference(epochs, target, 2, lambda name, partition: (name, partition) in held)

    def flat(partitions: Any) -> set[tuple[str, int]]:
        return {(name, number) for name, numbers in partitions.items() for number in numbers}

    before, wanted = flat(current), flat(target)
    assert flat(step.kept) == before & wanted
    assert flat(step.revoked) == before - wanted
    assert flat(step.added) == wanted - before - held
    assert flat(step.assigned) == flat(step.kept) | flat(step.added)
    assert step.waits == bool((wanted - before) & held)
    assert all(epoch == 2 for epochs in step.added.values() for epoch in epochs.values())


# Timers


class Fences:
    """Member timers of one group, and the members that they fence."""

    def __init__(self, member: ConsumerMember) -> None:
        self.group = ConsumerGroup("g")
        self.group.put_member(member)
        self.fenced: list[str] = []
        self.timers = Timers()
        self.members: MemberTimers[ConsumerGroup] = MemberTimers(self.timers, {"g": self.group}.get, self._fence)

    def _fence(self, group: ConsumerGroup, members: Any) -> StateChange[None]:
        self.fenced += [member.member_id for member in members]
        return StateChange((), None)

    def run(self, now_ms: int) -> list[str]:
        while (due := self.timers.take_due(now_ms)) is not None:
            due.operation(now_ms)
        return self.fenced


def test_a_member_whose_session_expires_is_fenced() -> None:
    fences = Fences(CONSUMER)
    fences.members.restart_session("g", "a", 100, now_ms=0)
    fences.members.restart_session("g", "a", 100, now_ms=50)
    assert fences.run(149) == []
    assert fences.run(150) == ["a"]


def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    fences = Fences(CONSUMER)
    fences.members.limit_revocation("g", CONSUMER, 100, now_ms=0)
    assert fences.run(100) == ["a"]


def test_a_member_that_has_moved_to_another_epoch_is_not_fenced() -> None:
    fences = Fences(CONSUMER)
    fences.members.limit_revocation("g", CONSUMER, 100, now_ms=0)
    fences.group.put_member(replace(CONSUMER, member_epoch=6))
    assert fences.run(100) == []


def test_a_member_with_nothing_left_to_revoke_is_not_fenced() -> None:
    fences = Fences(CONSUMER)
    fences.members.limit_revocation("g", CONSUMER, 100, now_ms=0)
    fences.members.limit_revocation("g", replace(CONSUMER, state=MemberState.STABLE), 100, now_ms=0)
    assert fences.run(100) == []


def test_a_member_that_has_left_is_not_fenced() -> None:
    fences = Fences(CONSUMER)
    fences.members.restart_session("g", "a", 100, now_ms=0)
    fences.members.cancel("g", "a")
    assert fences.run(100) == []
