"""The simple assignor of share groups: every partition has members, and all members have about the same number of
partitions.

Unlike in a consumer group, several members may have the same partition: as many as it takes for every member to have
one. Members keep their partitions as far as the result is even.

1. Each member keeps its partitions of topics that are still subscribed.
2. Members with more than their share give up partitions, and partitions with too many members lose some.
3. Partitions with too few members go to members with less than their share.

The order of every step is that of the Java hash map that Kafka uses, so that both compute the same assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias, TypeVar

from tailrace.coordinator.groups.consumer.consumer_assignors import Assignments
from tailrace.coordinator.groups.epoch.subscriptions import intersection
from tailrace.model.java.java_hash import java_hash
from tailrace.model.java.java_order import FIRST_CAPACITY, grown_capacity, in_hash_order

K = TypeVar("K", bound=Hashable)
_Slot: TypeAlias = tuple[bytes, int]  # a partition, by its topic's id

NAME = "simple"


class ShareSpec(NamedTuple):
    """The facts of a member that the assignor uses."""

    topic_names: frozenset[str]
    assigned: Mapping[bytes, frozenset[int]]  # the last target


def assign_simple(
    members: Mapping[str, ShareSpec], topic_ids: Mapping[str, bytes], assignable: Mapping[bytes, Collection[int]]
) -> Assignments:
    """Return the assignment. `topic_ids` are existing topics, `assignable` the partitions with an initialized state."""
    order = in_hash_order(members, java_hash)
    shared = _Shares([members[member_id].assigned for member_id in order])
    subscriptions = {spec.topic_names for spec in members.values()}
    if len(subscriptions) == 1:
        (names,) = subscriptions
        if not names:
            return {member_id: {} for member_id in members}
        topics = [topic_ids[name] for name in _existing(names, topic_ids)]
        shared.drop_unsubscribed(topics)
        shared.balance(topics, list(range(len(order))), _slots(topics, assignable), _slot_code)
    else:
        readers: dict[bytes, list[int]] = {}
        for index, member_id in enumerate(order):
            for name in _existing(members[member_id].topic_names, topic_ids):
                readers.setdefault(topic_ids[name], []).append(index)
        if not readers:
            return {member_id: {} for member_id in members}
        for topic in in_hash_order(readers, _uuid_code):
            shared.balance([topic], readers[topic], _slots([topic], assignable), lambda slot: slot[1])
    return {
        member_id: {topic: frozenset(partitions) for topic, partitions in share.items()}
        for member_id, share in zip(order, shared.members, strict=True)
    }


def _existing(names: frozenset[str], topic_ids: Mapping[str, bytes]) -> list[str]:
    """Return the names of existing topics, in the order that they have in a map of all names."""
    return in_hash_order(intersection(names, topic_ids), java_hash, grown_capacity(FIRST_CAPACITY, len(names)))


def _slots(topics: Iterable[bytes], assignable: Mapping[bytes, Collection[int]]) -> list[_Slot]:
    return [(topic, partition) for topic in topics for partition in sorted(assignable.get(topic, ()))]


class _Shares:
    """The partitions of all members, which are numbered."""

    def __init__(self, assigned: Iterable[Mapping[bytes, frozenset[int]]]) -> None:
        self.members: list[dict[bytes, set[int]]] = [
            {topic: set(one[topic]) for topic in in_hash_order(one, _uuid_code)} for one in assigned
        ]

    def drop_unsubscribed(self, topics: Collection[bytes]) -> None:
        for share in self.members:
            for topic in [topic for topic in share if topic not in topics]:
                del share[topic]

    def balance(
        self, topics: Collection[bytes], readers: Sequence[int], slots: Sequence[_Slot], code: Callable[[_Slot], int]
    ) -> None:
        """Share the partitions of topics among their readers. `code` is Java's hash of a partition."""
        sharing = 0 if not slots else -(-len(readers) // len(slots))
        part = sharing * len(slots) / len(readers)
        wanted = dict.fromkeys(range(len(self.members)), 0)  # 0 for members that do not subscribe
        for position, index in enumerate(readers):
            wanted[index] = ceil(part * (position + 1)) - ceil(part * position)

        holders: dict[_Slot, dict[int, None]] = {}
        held: dict[int, dict[_Slot, None]] = {}
        for index, share in enumerate(self.members):
            for topic, partitions in share.items():
                for partition in partitions if topic in topics else ():
                    holders.setdefault((topic, partition), {})[index] = None
                    held.setdefault(index, {})[(topic, partition)] = None

        def take_back(index: int, slot: _Slot) -> None:
            self.members[index][slot[0]].discard(slot[1])
            del holders[slot][index]
            del held[index][slot]

        for index, mine in held.items():
            too_many = len(mine) - wanted[index]
            for slot in in_hash_order(mine, code)[: max(too_many, 0)]:
                take_back(index, slot)
        capacity = _capacity_for(len(slots))
        for slot in in_hash_order(holders, code, capacity):
            for index in in_hash_order(holders[slot], int)[: max(len(holders[slot]) - sharing, 0)]:
                take_back(index, slot)

        for slot in slots:
            holders.setdefault(slot, {})
        wanting = [index for index in sorted(readers) if len(held.get(index, ())) < wanted[index]]
        self._hand_out(in_hash_order(holders, code, capacity), holders, held, wanting, wanted, sharing)

    def _hand_out(
        self,
        order: Iterable[_Slot],
        holders: Mapping[_Slot, Collection[int]],
        held: dict[int, dict[_Slot, None]],
        wanting: list[int],
        wanted: Mapping[int, int],
        sharing: int,
    ) -> None:
        position = 0
        has_given = False  # in this round over the members that need more
        for slot in order:
            missing = sharing - len(holders[slot])
            while missing > 0 and wanting:
                if position >= len(wanting):
                    if not has_given:
                        break
                    position, has_given = 0, False
                index = wanting[position]
                if index in holders[slot]:
                    position += 1
                    continue
                self.members[index].setdefault(slot[0], set()).add(slot[1])
                held.setdefault(index, {})[slot] = None
                missing -= 1
                has_given = True
                if len(held[index]) >= wanted[index]:
                    del wanting[position]
                else:
                    position += 1


def _capacity_for(count: int) -> int:
    """Return the capacity of a map that was created for this number of keys."""
    return 1 << (int((count + 1) / 0.75 + 1) - 1).bit_length()


def _uuid_code(value: bytes) -> int:
    mixed = int.from_bytes(value[:8], "big") ^ int.from_bytes(value[8:], "big")
    return (mixed >> 32) ^ (mixed & 0xFFFFFFFF)


def _slot_code(slot: _Slot) -> int:
    return 31 * _uuid_code(slot[0]) + slot[1]
