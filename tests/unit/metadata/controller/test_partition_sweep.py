"""A change of a broker in a large cluster: its partitions follow in steps, with the same result."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tailrace.metadata.controller import partition_sweep
from tailrace.metadata.controller.partition_sweep import AT_ONCE, CHANGED, PartitionSweep
from tailrace.metadata.decisions.brokers.broker_registration import plan_fence, plan_leave, plan_register, plan_unfence
from tailrace.metadata.image.features import BOOTSTRAP_LEVELS, ELIGIBLE_LEADER_REPLICAS_VERSION
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.errors import ErrorCode
from tests.support.controller_listener import PlayedController
from tests.unit.metadata.cluster import Cluster, registration

SESSION_MS = 9_000


def swept(cluster: Cluster) -> None:
    """Sweep to the end."""
    sweep = PartitionSweep(lambda: cluster.state, lambda records, now_ms: cluster.apply(records))
    sweep.start()
    while sweep.is_running:
        sweep.tick(0)


def assignments(cluster: Cluster) -> dict[tuple[str, int], tuple[Any, ...]]:
    return {
        (topic.name, number): (one.leader, tuple(one.isr), tuple(one.elr), tuple(one.last_known_elr))
        for topic, number, one in cluster.image.partitions()
    }


@pytest.mark.parametrize("has_elr", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_sweep_has_the_result_of_the_changes_at_once(seed: int, has_elr: bool) -> None:
    dice = Random(seed)
    levels = {**BOOTSTRAP_LEVELS, ELIGIBLE_LEADER_REPLICAS_VERSION: int(has_elr)}
    clusters = [Cluster([registration(number) for number in range(1, 6)], levels=levels) for _ in range(2)]
    for number in range(8):
        replicas = [dice.sample(range(1, 6), dice.randrange(1, 4)) for _ in range(30)]
        for cluster in clusters:
            cluster.add_topic(f"t{number}", *replicas, **({"min.insync.replicas": "2"} if number % 2 else {}))
    at_once, later = clusters
    for epoch in range(1_000, 1_020):
        broker = dice.randrange(1, 6)
        is_fenced = at_once.image.brokers[broker].fenced
        if is_fenced:
            again = registration(broker, incarnation_id=epoch.to_bytes(16, "big"))
            for cluster in clusters:
                cluster.carry_out(plan_register(cluster.state, again, next_offset=epoch, previous_epoch=-1))
        plan = plan_unfence if is_fenced else dice.choice([plan_fence, plan_leave])
        at_once.carry_out(plan(at_once.state, broker))
        later.carry_out(plan(later.state, broker, later=True))
        swept(later)
        assert assignments(later) == assignments(at_once), (plan, broker)


def test_a_silent_broker_in_a_large_cluster_is_fenced_in_small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    for name in ("a", "b"):
        controller.create_topic(name, [[1, 2]] * AT_ONCE)
    sizes: list[int] = []
    prepare = MetadataLog.prepare
    monkeypatch.setattr(
        MetadataLog, "prepare", lambda self, records: (sizes.append(len(records)), prepare(self, records))[1]
    )
    for _ in range(2 * SESSION_MS // 200):
        controller.tick(200)
        second.heartbeat()
    assert controller.image.brokers[1].fenced
    assert not controller.image.brokers[2].fenced
    assert {(one.leader, tuple(one.isr)) for _, _, one in controller.image.partitions()} == {(2, (2,))}
    assert sum(sizes) >= 2 * AT_ONCE
    assert max(sizes) <= CHANGED
    # It starts again, and leaves.
    first.incarnation_id = b"again" + bytes(11)
    assert first.register() == ErrorCode.NONE
    assert not first.heartbeat().is_fenced
    sizes.clear()
    assert not second.heartbeat(want_shut_down=True).should_shut_down
    for _ in range(100):
        controller.tick(200)
        first.heartbeat()
    assert {one.leader for _, _, one in controller.image.partitions()} == {-1}, "broker 1 is in no ISR"
    assert max(sizes, default=0) <= CHANGED


def test_a_broker_that_starts_again_in_a_large_cluster_leaves_its_partitions_in_small_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    controller.create_topic("a", [[1, 2]] * (AT_ONCE + 1))
    controller.tick(SESSION_MS // 2)
    second.heartbeat()
    for _ in range(SESSION_MS // 200):
        controller.node.tick(controller.now_ms)
    sizes: list[int] = []
    prepare = MetadataLog.prepare
    monkeypatch.setattr(
        MetadataLog, "prepare", lambda self, records: (sizes.append(len(records)), prepare(self, records))[1]
    )
    monkeypatch.setattr(type(controller.node.services.controller.brokers._sessions), "is_valid", lambda *_: False)
    first.incarnation_id = b"again" + bytes(11)
    assert first.register() == ErrorCode.NONE
    assert {(one.leader, tuple(one.isr)) for _, _, one in controller.image.partitions()} == {(2, (2,))}
    assert AT_ONCE < sum(sizes) < AT_ONCE + 10, "each partition is changed once"
    assert max(sizes) <= CHANGED


def test_a_controller_that_starts_finishes_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_sweep, "AT_ONCE", 2)
    controller = PlayedController()
    controller.brokers(2)
    controller.create_topic("a", [[1, 2]] * 5)
    brokers = controller.node.services.controller.brokers
    brokers._commit(plan_fence(brokers._state(), 1, later=True).records, controller.now_ms)
    assert controller.image.topics["a"].partitions[0].leader == 1
    brokers.begin(controller.now_ms)
    for _ in range(10):
        brokers.tick(controller.now_ms)
    assert {one.leader for _, _, one in controller.image.partitions()} == {2}
