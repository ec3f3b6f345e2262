"""Consumer groups under random schedules: no partition ever has two owners, and in quiet times all are owned.

A failure names its seed; `pytest -k "[17]"` plays it again.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.coordinator.consumers import Consumer, Coordinator

STEPS = 150


def check_owners(consumers: list[Consumer]) -> None:
    owners: dict[tuple[bytes, int], str] = {}
    for consumer in consumers:
        for partition in consumer.owned:
            assert partition not in owners, f"{partition} belongs to {owners[partition]} and {consumer.name}"
            owners[partition] = consumer.name


@pytest.mark.parametrize("seed", range(60))
def test_no_partition_has_two_owners_at_any_time(seed: int) -> None:
    dice = random.Random(seed)
    topics = {"t": dice.randint(1, 8), "u": dice.randint(1, 4)}
    coordinator = Coordinator(topics)
    consumers: list[Consumer] = []
    count = 0
    for _ in range(STEPS):
        step = dice.random()
        if step < 0.12 and len(consumers) < 6:
            count += 1
            instance = f"i{dice.randint(0, 2)}" if dice.random() < 0.3 else None
            if all(consumer.instance_id != instance for consumer in consumers) or instance is None:
                wanted = dice.choice([("t",), ("t", "u"), ("u",)])
                pattern = ".*" if dice.random() < 0.2 else None
                consumers.append(Consumer(f"c{count}", topics=wanted, pattern=pattern, instance_id=instance))
        elif step < 0.18 and consumers:
            gone = consumers.pop(dice.randrange(len(consumers)))
            if gone.epoch > 0 and gone.member_id in coordinator.group.members:
                gone.leave(coordinator, -2 if gone.instance_id and dice.random() < 0.5 else -1)
        elif step < 0.22:
            topics[dice.choice(["t", "u", "v"])] = dice.randint(1, 8)
            coordinator.set_topics(topics)
        elif step < 0.25:
            coordinator.reload(compact=dice.random() < 0.5)
        elif step < 0.35:
            # Time passes. A member that is silent for longer than its session knows that it has lost its partitions.
            ms = dice.choice([10, 4_000, 20_000])
            silent = [consumer for consumer in consumers if dice.random() < 0.3]
            for _ in range(dice.randint(1, 4)):
                coordinator.advance(ms)
                for consumer in consumers:
                    if consumer not in silent:
                        consumer.heartbeat(coordinator)
                        check_owners([one for one in consumers if one not in silent])
            for consumer in silent:
                consumer.fenced()
        elif consumers:
            dice.choice(consumers).heartbeat(coordinator, is_answer_lost=dice.random() < 0.1)
        check_owners(consumers)
    if not consumers:
        return
    for _ in range(25):
        coordinator.advance(5_000)
        for consumer in consumers:
            consumer.heartbeat(coordinator)
            check_owners(consumers)
    assert coordinator.group.state_name == "Stable"
    wanted = coordinator.group.subscriptions.among(topics)
    owned = sum(len(consumer.owned) for consumer in consumers)
    assert owned == sum(count for topic, count in topics.items() if topic in wanted)
