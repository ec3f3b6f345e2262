"""Server-side assignors of consumer groups.

    uniform   gives all members about the same number of partitions, and moves as few partitions as possible
    range     gives members, in order, consecutive partitions of each topic, so that a member gets the same partition
              numbers of several topics

An assignor is a pure function of the members (subscriptions, last targets) and the partition counts of topics.
`consumer_target` prepares its input, so that it can run on another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.uneven_assignor import assign_unevenly
from tailrace.coordinator.groups.epoch.epoch_group import Assignment
from tailrace.coordinator.groups.epoch.subscriptions import intersection
from tailrace.coordinator.groups.epoch.target_computations import COST_MAX, Target
from tailrace.metadata.image.image import MetadataImage

Assignments: TypeAlias = dict[str, Assignment]  # by member id


class MemberSpec(NamedTuple):
    """The facts of a member that an assignor uses."""

    topics: frozenset[bytes]  # ids of topics that exist
    assigned: Mapping[bytes, frozenset[int]]  # the last target assignment
    instance_id: str | None = None


Members: TypeAlias = Mapping[str, MemberSpec]
PartitionCounts: TypeAlias = Mapping[bytes, int]
Assignor: TypeAlias = Callable[[Members, PartitionCounts], Assignments]


def assign_range(members: Members, partition_counts: PartitionCounts) -> Assignments:
    """Assign by ranges. Members with an instance id come first, sorted by it; then the others by member id."""
    order = sorted(members, key=lambda member_id: _range_order(member_id, members[member_id].instance_id))
    subscribers: dict[bytes, list[str]] = {}
    for member_id in order:
        for topic in members[member_id].topics:
            subscribers.setdefault(topic, []).append(member_id)
    assignments: Assignments = {member_id: {} for member_id in members}
    for topic, readers in subscribers.items():
        share, extra = divmod(partition_counts[topic], len(readers))
        start = 0
        for position, member_id in enumerate(readers):
            end = start + share + (position < extra)
            if start < end:
                assignments[member_id][topic] = frozenset(range(start, end))
            start = end
    return assignments


def _range_order(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return (instance_id is None, member_id if instance_id is None else instance_id)


def assign_uniform(members: Members, partition_counts: PartitionCounts) -> Assignments:
    if not members:
        return {}
    subscriptions = {spec.topics for spec in members.values()}
    if len(subscriptions) > 1:
        return assign_unevenly(
            {member_id: (spec.topics, spec.assigned) for member_id, spec in members.items()}, partition_counts
        )
    return _assign_evenly(members, subscriptions.pop(), partition_counts)


def _assign_evenly(members: Members, topics: frozenset[bytes], partition_counts: PartitionCounts) -> Assignments:
    """Assign equal shares to members with equal subscriptions. The first members get the remaining partitions."""
    share, extra = divmod(sum(partition_counts[topic] for topic in topics), len(members))
    owned = {
        (topic, partition)
        for spec in members.values()
        for topic, partitions in spec.assigned.items()
        for partition in partitions
    }
    free = [
        (topic, partition)
        for topic in sorted(topics)
        for partition in range(partition_counts[topic])
        if (topic, partition) not in owned
    ]
    kept: dict[str, dict[bytes, set[int]]] = {}
    with_room: list[tuple[str, int]] = []
    members_left = len(members)
    for member_id, spec in members.items():
        room = share + (extra > 0)
        has_extra = extra > 0
        keeps = kept[member_id] = {}
        for topic, partition in _partitions(spec.assigned):
            if topic not in topics or partition >= partition_counts[topic]:
                continue
            if room > 0:
                room -= 1
                keeps.setdefault(topic, set()).add(partition)
            else:
                free.append((topic, partition))
        # A member that has no extra partition yet gets none, if enough members follow: one of them may own it already.
        if room > 0 and has_extra and members_left > extra:
            room -= 1
            has_extra = False
        if room > 0:
            with_room.append((member_id, room))
        extra -= has_extra
        members_left -= 1
    given = iter(free)
    for member_id, room in with_room:
        for _, (topic, partition) in zip(range(room), given, strict=False):
            kept[member_id].setdefault(topic, set()).add(partition)
    left = next(given, None)
    assert left is None, f"partition {left} is left over"
    return {
        member_id: {topic: frozenset(partitions) for topic, partitions in keeps.items()}
        for member_id, keeps in kept.items()
    }


def _partitions(assigned: Mapping[bytes, frozenset[int]]) -> Iterator[tuple[bytes, int]]:
    for topic, partitions in assigned.items():
        for partition in sorted(partitions):
            yield topic, partition


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}


def consumer_target(
    group: ConsumerGroup, epoch: int, member: ConsumerMember, image: MetadataImage, default_assignor: str
) -> Target[Assignment]:
    """Prepare the computation of a group's target, so that it can run on another thread.

    `member` is a new or changed member, which the group does not have yet.
    """
    members = group.members_with(member)
    before = {member_id: group.target_of(one) for member_id, one in members.items()}
    assignor = group.preferred_assignor(members.values()) or default_assignor
    # Most members of a group have the same subscription: each is resolved once.
    subscribed = {(one.topic_names, one.topic_pattern): group.topics_of(one) for one in members.values()}

    def compute() -> Assignments:
        topics = {subscription: topic_ids(names, image) for subscription, names in subscribed.items()}
        specs = {
            one.member_id: MemberSpec(
                topics[one.topic_names, one.topic_pattern], before[one.member_id], one.instance_id
            )
            for one in members.values()
        }
        ids = frozenset[bytes]().union(*topics.values())
        counts = {topic: len(image.topics_by_id[topic].partitions) for topic in ids}
        assigned = ASSIGNORS[assignor](specs, counts)
        return {member_id: assigned.get(member_id, {}) for member_id in specs}

    return Target(
        epoch, assignor, group.target.copy(), _cost(group, members.values(), subscribed.values(), image), compute
    )


def topic_ids(names: Collection[str], image: MetadataImage) -> frozenset[bytes]:
    """Return the ids of the topics that exist."""
    topics = image.topics
    return frozenset(topics[name].id for name in intersection(names, topics))


def _cost(
    group: ConsumerGroup,
    members: Collection[ConsumerMember],
    subscribed: Collection[Collection[str]],
    image: MetadataImage,
) -> int:
    """Return the cost of computing a target: the subscriptions (topics × members), plus the partitions of the
    subscribed topics unless the subscriptions alone exceed COST_MAX."""
    cost = sum(len(one.topic_names) + len(group.matches_of(one)) for one in members)
    if cost > COST_MAX:
        return cost
    topics = image.topics
    return cost + sum(len(topics[name].partitions) for name in set().union(*subscribed) if name in topics)
