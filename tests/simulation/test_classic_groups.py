"""Classic groups under random schedules: members join, stall, crash and leave; leaders change, replicas lag.

A commit is accepted only from the owner of a partition, and never goes backwards. An acknowledged commit survives. Once
the faults end, every living member gets a share. A failing run names its seed: SEED=… repeats it.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.classic_members import PARTITIONS, SimulatedMember, World

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(12))
TROUBLE_MS = 60_000
STALL_MS = 10_000
CONVERGED_WITHIN_MS = 60_000


def play(seed: int) -> World:
    world = World(seed)
    random = world.random
    names = iter(range(1_000))

    def add() -> None:
        number = next(names)
        is_static = random.random() < 0.3
        version = random.choice([3, 5, 9]) if not is_static else random.choice([5, 9])
        world.members.append(
            SimulatedMember(world, f"m{number}", version=version, instance_id=f"i{number}" if is_static else None)
        )

    def restart(member: SimulatedMember) -> None:
        """Start a static member again: another process with the same instance id."""
        member.crash()
        again = SimulatedMember(world, f"{member.name}'", version=member.version, instance_id=member.instance_id)
        world.members.append(again)

    for _ in range(random.randrange(1, 4)):
        add()
    ends_ms = world.now_ms + TROUBLE_MS
    while world.now_ms < ends_ms:
        world.run(random.randrange(1, 4_000))
        living = [member for member in world.members if member.is_alive]
        trouble = random.random()
        if trouble < 0.2 and len(living) < PARTITIONS:
            add()
        elif trouble < 0.4 and living:
            random.choice(living).stall(random.randrange(STALL_MS))
        elif trouble < 0.5 and len(living) > 1:
            random.choice(living).crash()
        elif trouble < 0.6 and len(living) > 1:
            random.choice(living).leave()
        elif trouble < 0.7:
            world.change_leader()
        elif trouble < 0.8 and living:
            static = [member for member in living if member.instance_id is not None]
            if static:
                restart(random.choice(static))
        elif trouble < 0.85:
            world.log.is_refusing = not world.log.is_refusing
    world.log.is_refusing = False
    world.is_calm = True
    world.run(STALL_MS)
    if not any(member.is_alive for member in world.members):
        add()
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_after_faults_every_partition_has_one_owner_whose_commits_advance(seed: int) -> None:
    world = play(seed)
    waited_ms = 0
    while not world.has_converged():
        assert waited_ms < CONVERGED_WITHIN_MS, f"seed {seed}: not converged"
        world.run(500)
        waited_ms += 500
    before = dict(world.accepted)
    world.run(5_000)
    assert world.has_converged()
    assert all(world.accepted.get(partition, -1) > before.get(partition, -1) for partition in range(PARTITIONS))
    world.change_leader()


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_reloaded_coordinator_has_the_same_offsets_members_and_generation(seed: int) -> None:
    """The group continues in the same generation."""
    world = play(seed)
    world.run(CONVERGED_WITHIN_MS)
    group = world.group
    assert group is not None
    offsets = world.runtime.shard(0).offsets.fetch("g", None, require_stable=False)
    facts = (group.generation, group.leader_id, {one.member_id: one.assignment for one in group.members.values()})
    world.change_leader()
    again = world.group
    assert again is not None
    assert (
        again.generation,
        again.leader_id,
        {one.member_id: one.assignment for one in again.members.values()},
    ) == facts
    assert world.runtime.shard(0).offsets.fetch("g", None, require_stable=False) == offsets
    world.run(5_000)
    assert world.group is not None
    assert world.group.generation == group.generation, "the members noticed"
