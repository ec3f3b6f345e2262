"""plan_even: spreads each topic, and all topics together, evenly over brokers, with as few moves as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tailrace.client.cluster.metadata import PartitionMetadata, TopicMetadata
from tailrace.client.cluster.reassignments import with_balanced_leaders
from tailrace.model.ids import BrokerId, TopicPartition


def plan_even(topics: Iterable[TopicMetadata], brokers: Sequence[BrokerId]) -> dict[TopicPartition, list[BrokerId]]:
    """Return the replicas of all partitions of these topics. The number of replicas stays, up to that of brokers."""
    load: Counter[BrokerId] = Counter()
    plan: dict[TopicPartition, list[BrokerId]] = {}
    for topic in sorted(topics, key=lambda one: (-len(one.partitions), one.name)):
        spread = _spread(topic.partitions, brokers, load)
        load.update(node for replicas in spread.values() for node in replicas)
        plan |= with_balanced_leaders(spread, brokers)
    return plan


def _spread(
    partitions: Sequence[PartitionMetadata], brokers: Sequence[BrokerId], load: Counter[BrokerId]
) -> dict[TopicPartition, list[BrokerId]]:
    """Spread one topic. Brokers with a smaller load get the replicas that are left over."""
    factors = {one.partition: min(len(one.replicas), len(brokers)) for one in partitions}
    held = Counter(node for one in partitions for node in one.replicas)
    share, left_over = divmod(sum(factors.values()), len(brokers))
    by_load = sorted(brokers, key=lambda node: (load[node], -held[node], node))
    room = {node: share + (position < left_over) for position, node in enumerate(by_load)}
    plan: dict[TopicPartition, list[BrokerId]] = {one.partition: [] for one in partitions}
    for kept in range(max(factors.values(), default=0)):  # each partition keeps one before any keeps two
        for one in partitions:
            replicas = plan[one.partition]
            usable = [node for node in one.replicas if node not in replicas and room.get(node, 0) > 0]
            if usable and kept < factors[one.partition]:
                node = max(usable, key=room.__getitem__)
                replicas.append(node)
                room[node] -= 1
    for partition, replicas in plan.items():
        while len(replicas) < factors[partition]:
            node = max((one for one in brokers if one not in replicas), key=lambda one: (room[one], -load[one], -one))
            replicas.append(node)
            room[node] -= 1
    return plan
