"""The uniform assignor for members with different subscriptions: as even as the subscriptions permit.

1. Each member keeps its partitions of topics that it still subscribes to.
2. Free partitions go to the least loaded subscriber, topics with most partitions per subscriber first.
3. Topic by topic, partitions move from the most to the least loaded subscriber, until nothing improves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace

PASSES_MAX = 16  # two or three suffice in practice


def assign_unevenly(
    members: Mapping[str, tuple[frozenset[bytes], Mapping[bytes, frozenset[int]]]],
    partition_counts: Mapping[bytes, int],
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Return the assignment. `members` maps each member id to its topics and its last target."""
    return _UnevenAssignment(members, partition_counts).build()


class _UnevenAssignment:
    def __init__(
        self,
        members: Mapping[str, tuple[frozenset[bytes], Mapping[bytes, frozenset[int]]]],
        partition_counts: Mapping[bytes, int],
    ) -> None:
        self._members = list(members)
        self._counts = partition_counts
        self._subscribers: dict[bytes, list[int]] = defaultdict(list)
        self._loads = [0] * len(members)
        self._owners: dict[bytes, list[int | None]] = {}
        for index, (topics, _) in enumerate(members.values()):
            for topic in topics:
                self._subscribers[topic].append(index)
                self._owners.setdefault(topic, [None] * partition_counts[topic])
        for index, (topics, assigned) in enumerate(members.values()):
            for topic, partitions in assigned.items():
                for partition in partitions if topic in topics else ():
                    if partition < partition_counts[topic]:
                        self._assign(topic, partition, index)

    def _assign(self, topic: bytes, partition: int, index: int) -> None:
        owners = self._owners[topic]
        before = owners[partition]
        if before is not None:
            self._loads[before] -= 1
        owners[partition] = index
        self._loads[index] += 1

    def build(self) -> dict[str, dict[bytes, frozenset[int]]]:
        topics = sorted(self._subscribers, key=self._topic_order)
        for topic in topics:
            self._hand_out(topic)
        shared = [topic for topic in topics if len(self._subscribers[topic]) > 1]
        for _ in range(PASSES_MAX):
            moved = [self._balance(topic) for topic in shared]
            if not any(moved):
                break
        result: list[dict[bytes, set[int]]] = [{} for _ in self._members]
        for topic, owners in self._owners.items():
            for partition, index in enumerate(owners):
                assert index is not None, f"partition {partition} is left over"
                result[index].setdefault(topic, set()).add(partition)
        return {
            member_id: {topic: frozenset(partitions) for topic, partitions in result[index].items()}
            for index, member_id in enumerate(self._members)
        }

    def _topic_order(self, topic: bytes) -> tuple[float, int, bytes]:
        subscribers = len(self._subscribers[topic])
        return (-self._counts[topic] / subscribers, subscribers, topic)

    def _hand_out(self, topic: bytes) -> None:
        free = [partition for partition, owner in enumerate(self._owners[topic]) if owner is None]
        if not free:
            return
        least = [(self._loads[index], index) for index in self._subscribers[topic]]
        heapify(least)
        for partition in free:
            _, index = least[0]
            self._assign(topic, partition, index)
            heapreplace(least, (self._loads[index], index))

    def _balance(self, topic: bytes) -> bool:
        """Move partitions of a topic from its most to its least loaded subscribers. Return True if any was moved."""
        subscribers = self._subscribers[topic]
        loads = [self._loads[index] for index in subscribers]
        if max(loads) - min(loads) <= 1:
            return False
        owned: dict[int, list[int]] = defaultdict(list)
        for partition, owner in enumerate(self._owners[topic]):
            assert owner is not None
            owned[owner].append(partition)
        least = [(self._loads[index], index) for index in subscribers]
        most = [(-self._loads[index], index) for index in owned]
        heapify(least)
        heapify(most)
        moved = False
        while most:
            load, giver = most[0]
            if -load != self._loads[giver] or not owned[giver]:
                heappop(most)
                continue
            while least[0][0] != self._loads[least[0][1]]:  # an outdated entry: the load has changed
                heapreplace(least, (self._loads[least[0][1]], least[0][1]))
            low, taker = least[0]
            if -load - low <= 1:
                break
            partition = owned[giver].pop()
            self._assign(topic, partition, taker)
            moved = True
            heapreplace(most, (-self._loads[giver], giver))
            heapreplace(least, (self._loads[taker], taker))
            if taker in owned:
                owned[taker].append(partition)
                heappush(most, (-self._loads[taker], taker))
        return moved
