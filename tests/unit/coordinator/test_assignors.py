"""Server-side assignors: everything assigned once, to subscribers, evenly, and with as few moves as can be."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.coordinator.groups.consumer.consumer_assignors import (
    ASSIGNORS,
    Assignments,
    MemberSpec,
    assign_range,
    assign_uniform,
)

TOPICS = [bytes([number]) * 16 for number in range(5)]


def members_of(subscriptions: dict[str, set[int]], assigned: Assignments | None = None) -> dict[str, MemberSpec]:
    return {
        member_id: MemberSpec(frozenset(TOPICS[number] for number in numbers), (assigned or {}).get(member_id, {}))
        for member_id, numbers in subscriptions.items()
    }


def partitions_of(assignments: Assignments) -> list[tuple[str, bytes, int]]:
    return sorted(
        (member_id, topic, partition)
        for member_id, assignment in assignments.items()
        for topic, partitions in assignment.items()
        for partition in partitions
    )


def sizes(assignments: Assignments) -> list[int]:
    return [sum(map(len, assignment.values())) for assignment in assignments.values()]


def moves(before: Assignments, after: Assignments) -> int:
    owner = {(topic, partition): member for member, topic, partition in partitions_of(before)}
    return sum(owner.get((topic, partition), member) != member for member, topic, partition in partitions_of(after))


counts = st.fixed_dictionaries({topic: st.integers(0, 12) for topic in TOPICS})
subscriptions = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(9)]),
    st.sets(st.integers(0, 4)),
    min_size=1,
)


@given(st.sampled_from(sorted(ASSIGNORS)), subscriptions, subscriptions, counts, counts)
@settings(max_examples=300, deadline=None)
def test_every_partition_is_assigned_to_one_subscriber(assignor, first, second, counts_before, counts_after):
    """Also after members, subscriptions and partition counts have changed."""
    before = ASSIGNORS[assignor](members_of(first), counts_before)
    members = members_of(second, before)
    after = ASSIGNORS[assignor](members, counts_after)
    assert set(after) == set(second)
    assigned = partitions_of(after)
    assert all(topic in members[member_id].topics for member_id, topic, _ in assigned)
    wanted = {topic for spec in members.values() for topic in spec.topics}
    assert sorted((topic, partition) for _, topic, partition in assigned) == sorted(
        (topic, partition) for topic in wanted for partition in range(counts_after[topic])
    )
    assert all(partitions for assignment in after.values() for partitions in assignment.values())


@given(st.integers(1, 9), st.integers(1, 9), st.sets(st.integers(0, 4), min_size=1), counts)
def test_uniform_is_even_and_moves_no_more_than_it_must(first, second, topics, partition_counts):
    before = assign_uniform(members_of({f"m{n}": topics for n in range(first)}), partition_counts)
    assert max(sizes(before)) - min(sizes(before)) <= 1
    after = assign_uniform(members_of({f"m{n}": topics for n in range(second)}, before), partition_counts)
    assert max(sizes(after)) - min(sizes(after)) <= 1
    total = sum(sizes(before))
    if second >= first:  # only what the new members get may move
        share = -(-total // second)
        assert moves(before, after) <= (second - first) * share
    else:  # only what those that left had
        gone = sum(len(p) for n in range(second, first) for p in before[f"m{n}"].values())
        assert moves(before, after) <= gone + second


def test_uniform_leaves_a_balanced_group_as_it_is():
    members = {f"m{n}": {0, 1} for n in range(3)}
    partition_counts = {TOPICS[0]: 5, TOPICS[1]: 5}
    before = assign_uniform(members_of(members), partition_counts)
    assert assign_uniform(members_of(members, before), partition_counts) == before


@given(subscriptions, counts)
@settings(max_examples=200, deadline=None)
def test_uneven_subscriptions_cannot_be_made_more_even_by_one_move(wanted, partition_counts):
    members = members_of(wanted)
    after = assign_uniform(members, partition_counts)
    load = {member_id: sum(map(len, assignment.values())) for member_id, assignment in after.items()}
    for member_id, topic, _ in partitions_of(after):
        for other, spec in members.items():
            if topic in spec.topics:
                assert load[member_id] - load[other] <= 1


def test_range_gives_equal_partitions_of_topics_to_one_member():
    assigned = assign_range(members_of({"b": {0, 1}, "a": {0, 1}}), {TOPICS[0]: 3, TOPICS[1]: 3})
    assert assigned == {
        "a": {TOPICS[0]: frozenset({0, 1}), TOPICS[1]: frozenset({0, 1})},
        "b": {TOPICS[0]: frozenset({2}), TOPICS[1]: frozenset({2})},
    }


def test_range_has_static_members_first():
    members = {
        "a": MemberSpec(frozenset(TOPICS[:1]), {}),
        "z": MemberSpec(frozenset(TOPICS[:1]), {}, instance_id="one"),
    }
    assert assign_range(members, {TOPICS[0]: 1}) == {"a": {}, "z": {TOPICS[0]: frozenset({0})}}
