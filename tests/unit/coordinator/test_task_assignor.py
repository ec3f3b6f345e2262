"""The sticky task assignor: even by process, and what one has stays where it is."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.coordinator.groups.streams.streams_member import Tasks
from tailrace.coordinator.groups.streams.task_assignor import MemberSpec, SubtopologySpec, assign_tasks
from tailrace.model.java.java_order import (
    PriorityQueue,
    grown_timeline_capacity,
    hash_map_capacity,
    hash_map_order,
    timeline_order,
)


def counts(shares: dict[str, Tasks]) -> dict[str, int]:
    return {name: sum(map(len, tasks.active.values())) for name, tasks in shares.items()}


def test_map_orders_equal_javas():
    # As a JVM has listed them.
    keys = ["process-2", "process-0", "process-1", "alpha", "beta", "gamma", "Ωmega"]
    assert hash_map_order(keys) == ["alpha", "process-2", "process-1", "Ωmega", "process-0", "beta", "gamma"]
    assert hash_map_order(keys[:3], hash_map_capacity(3)) == ["process-1", "process-0", "process-2"]
    many = hash_map_order(f"m{number * 7}" for number in range(14))
    assert many == ["m0", "m91", "m70", "m84", "m7", "m42", "m63", "m77", "m21", "m35", "m56", "m14", "m28", "m49"]
    assert [hash_map_capacity(count) for count in (0, 1, 2, 3, 4, 5, 9)] == [1, 1, 2, 4, 4, 8, 16]
    assert [grown_timeline_capacity(2, count) for count in (1, 2, 3, 5, 6, 11)] == [2, 2, 4, 4, 8, 16]
    assert sorted(timeline_order(["a", "b", "c"], 4)) == ["a", "b", "c"]


def test_the_priority_queue_orders_like_javas():
    random = Random(7)
    numbers = [random.randrange(50) for _ in range(200)]
    queue = PriorityQueue(float, numbers)
    taken = []
    while (least := queue.poll()) is not None:
        taken.append(least)
    assert taken == sorted(numbers)
    equals = PriorityQueue(
        lambda pair: pair[0], [(load, place) for place, load in enumerate([2, 1, 1, 2, 0, 1, 0, 2, 1])]
    )
    assert [(equals.poll() or (0, -1))[1] for _ in range(9)] == [4, 6, 1, 2, 8, 5, 7, 0, 3], "among equals as in a JVM"


@pytest.mark.parametrize("seed", range(30))
def test_tasks_are_balanced_and_stay_with_their_members(seed: int) -> None:
    random = Random(seed)
    subtopologies = {
        name: SubtopologySpec(random.randint(1, 7), random.random() < 0.5) for name in ("a", "b", "c")[: seed % 3 + 1]
    }
    replicas = random.randrange(3)
    members = {f"m{number}": MemberSpec(f"p{number}", Tasks()) for number in range(random.randint(1, 6))}
    shares = assign_tasks(members, subtopologies, replicas)
    wanted = {(name, number) for name, one in subtopologies.items() for number in range(one.task_count)}
    given = [(name, number) for share in shares.values() for name, of in share.active.items() for number in of]
    assert sorted(given) == sorted(wanted)
    assert max(counts(shares).values()) - min(counts(shares).values()) <= 1
    for share in shares.values():
        assert not any(share.active.get(name, frozenset()) & numbers for name, numbers in share.standby.items())
        assert all(subtopologies[name].is_stateful for name in share.standby)
    copies = sum(len(numbers) for share in shares.values() for numbers in share.standby.values())
    stateful = sum(one.task_count for one in subtopologies.values() if one.is_stateful)
    assert copies == stateful * min(replicas, len(members) - 1)
    again = assign_tasks(
        {name: MemberSpec(spec.process_id, shares[name]) for name, spec in members.items()}, subtopologies, replicas
    )
    assert {name: share.active for name, share in again.items()} == {name: one.active for name, one in shares.items()}
