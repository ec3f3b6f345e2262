"""The target assignment of a large group: a worker thread computes it, and its records are written in slices."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import pytest

from tailrace.coordinator.groups.epoch import target_computations
from tailrace.protocol import messages as m
from tests.support.memory_node import NOW_MS, Client, start

TOPICS: Final = [f"topic-{number}" for number in range(20)]
INTERVAL_MS: Final = 1_000


class LargeGroup:
    """A broker whose chores a test runs, and members of one group."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, slice_items: int = 2_048) -> None:
        monkeypatch.setattr("tailrace.coordinator.groups.epoch.epoch_engine.COST_MAX", 100)
        monkeypatch.setattr(target_computations, "ITEMS_A_SLICE", slice_items)
        self.chores: deque[Any] = deque()
        self.is_busy = False  # True if chores wait for `run_chores`
        self.broker = start(static={"offsets.topic.num.partitions": "1"}, submit=self._submit)
        self.client = Client(self.broker)
        topic = m.CreateTopicsRequest.CreatableTopic
        topics = [topic(name=name, num_partitions=3, replication_factor=1) for name in TOPICS]
        self.client.ask(m.CreateTopicsRequest(topics=topics, timeout_ms=1_000), 7)
        self.client.ask(m.FindCoordinatorRequest(key="group"), 2)
        self.is_busy = True
        self.epochs: dict[str, int] = {}

    def _submit(self, chore: Any) -> None:
        self.chores.append(chore)
        if not self.is_busy:
            self.run_chores()

    def beat(self, member: str) -> Any:
        request = m.ConsumerGroupHeartbeatRequest(group_id="group", member_id=member)
        if member not in self.epochs:
            request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 60_000, TOPICS, []
        request.member_epoch = self.epochs.get(member, 0)
        response = self.client.ask(request, 1)
        assert not response.error_code, response.error_message
        self.epochs[member] = response.member_epoch
        return response

    def leave(self, member: str) -> None:
        del self.epochs[member]
        self.client.ask(m.ConsumerGroupHeartbeatRequest(group_id="group", member_id=member, member_epoch=-1), 1)

    def run_chores(self) -> None:
        while self.chores:
            chore = self.chores.popleft()
            chore.apply(chore.run(), NOW_MS)

    def tick(self, ms: int = 1) -> None:
        self.client.now_ms += ms
        self.broker.tick(self.client.now_ms)

    def described(self) -> Any:
        (group,) = self.client.ask(m.ConsumerGroupDescribeRequest(group_ids=["group"]), 1).groups
        return group

    def is_assigned(self) -> bool:
        group = self.described()
        return bool(group.assignment_epoch == group.group_epoch)

    def targets(self) -> dict[str, int]:
        return {
            member.member_id: sum(len(one.partitions) for one in member.target_assignment.topic_partitions)
            for member in self.described().members
        }

    def join(self, count: int) -> None:
        """Let members join until the target of all of them is being computed."""
        for number in range(count):
            self.beat(f"m{number}")
        self.run_chores()
        self.tick()
        self.tick(INTERVAL_MS)
        if not self.is_assigned():
            self.beat("m0")
        assert self.chores


def test_a_heartbeat_does_not_wait_for_the_target_of_a_large_group(monkeypatch: pytest.MonkeyPatch) -> None:
    group = LargeGroup(monkeypatch)
    group.join(6)
    assert not group.is_assigned()
    group.beat("m1")
    assert len(group.chores) == 1
    group.run_chores()
    group.tick()
    assert group.is_assigned()
    assert group.targets() == {f"m{number}": 10 for number in range(6)}


def test_the_records_of_a_large_target_are_written_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    group = LargeGroup(monkeypatch, slice_items=20)
    group.join(6)
    group.run_chores()
    group.tick()
    assert not group.is_assigned()
    assert any(group.targets().values())
    for _ in range(6):
        group.tick()
    assert group.is_assigned()
    assert sum(group.targets().values()) == 60


def test_a_target_is_used_if_a_member_has_joined_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    group = LargeGroup(monkeypatch)
    group.join(6)
    group.beat("late")
    group.run_chores()
    group.tick()
    assert group.targets() == {**{f"m{number}": 10 for number in range(6)}, "late": 0}
    group.tick(INTERVAL_MS)
    group.beat("m0")
    group.run_chores()
    group.tick()
    assert group.is_assigned()
    assert sum(group.targets().values()) == 60
    assert group.targets()["late"]


@pytest.mark.parametrize("slices", [0, 1], ids=["computed", "partly-written"])
def test_a_target_is_dropped_if_a_member_has_left_meanwhile(monkeypatch: pytest.MonkeyPatch, slices: int) -> None:
    group = LargeGroup(monkeypatch, slice_items=20)
    group.join(6)
    group.run_chores()
    for _ in range(slices):
        group.tick()
    group.leave("m5")
    for _ in range(8):
        group.tick()
    assert not group.is_assigned()
    assert set(group.targets()) == {f"m{number}" for number in range(5)}
    group.tick(INTERVAL_MS)
    group.beat("m0")
    group.run_chores()
    for _ in range(8):
        group.tick()
    assert group.is_assigned()
    assert group.targets() == {f"m{number}": 12 for number in range(5)}


def test_a_failed_computation_is_begun_again_by_a_later_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    group = LargeGroup(monkeypatch)
    group.join(6)
    with pytest.raises(RuntimeError, match="broken"):
        group.chores.popleft().failed(RuntimeError("broken"), NOW_MS)
    group.beat("m0")
    group.run_chores()
    group.tick()
    assert group.is_assigned()
