"""An even spread of topics over brokers, with few moves."""

from __future__ import annotations

import random
from collections import Counter

from tailrace.client.cluster.even_assignment import plan_even
from tailrace.client.cluster.metadata import PartitionMetadata, TopicMetadata
from tailrace.model.ids import TopicPartition


def topic(name: str, *replicas: tuple[int, ...]) -> TopicMetadata:
    partitions = tuple(
        PartitionMetadata(TopicPartition(name, number), nodes[0], 0, nodes, nodes, ())
        for number, nodes in enumerate(replicas)
    )
    return TopicMetadata(name, bytes(16), False, partitions)


def test_a_topic_of_one_broker_is_spread_over_two_with_half_of_the_moves() -> None:
    plan = plan_even([topic("a", *[(1,)] * 6)], [1, 2])
    assert Counter(replicas[0] for replicas in plan.values()) == {1: 3, 2: 3}


def test_topics_of_one_partition_are_spread_together() -> None:
    plan = plan_even([topic(name, (1,)) for name in "abcdef"], [1, 2, 3])
    assert Counter(replicas[0] for replicas in plan.values()) == {1: 2, 2: 2, 3: 2}


def test_partitions_that_are_left_over_go_to_different_brokers() -> None:
    plan = plan_even([topic(name, (1,), (1,), (1,)) for name in "abcd"], [1, 2])
    assert Counter(replicas[0] for replicas in plan.values()) == {1: 6, 2: 6}


def test_an_even_spread_is_not_changed() -> None:
    topics = [topic("a", (1,), (2,), (3,), (1,)), topic("b", (2,), (3,)), topic("c", (1, 2), (2, 3), (3, 1))]
    plan = plan_even(topics, [1, 2, 3])
    for one in topics:
        for partition in one.partitions:
            assert sorted(plan[partition.partition]) == sorted(partition.replicas), one.name


def test_random_topics_are_spread_evenly_and_keep_their_number_of_replicas() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        brokers = list(range(1, chance.randint(2, 6)))
        before = brokers[: chance.randint(1, len(brokers))]
        topics = []
        for number in range(chance.randint(1, 8)):
            factor = chance.randint(1, len(before))
            replicas = [tuple(chance.sample(before, factor)) for _ in range(chance.randint(1, 12))]
            topics.append(topic(f"t{number}", *replicas))
        plan = plan_even(topics, brokers)
        total = Counter(node for replicas in plan.values() for node in replicas)
        for one in topics:
            of_topic = Counter(dict.fromkeys(brokers, 0))
            for partition in one.partitions:
                replicas = plan[partition.partition]
                assert len(set(replicas)) == len(replicas) == len(partition.replicas)
                of_topic.update(replicas)
            # With several replicas the last partitions may have no choice, because their replicas must differ.
            room = 1 if one.replication_factor == 1 else 2 * one.replication_factor
            assert max(of_topic.values()) - min(of_topic.values()) <= room, seed
        spread = [total[node] for node in brokers]
        if all(one.replication_factor == 1 for one in topics):
            assert max(spread) - min(spread) <= 1, (seed, spread)
