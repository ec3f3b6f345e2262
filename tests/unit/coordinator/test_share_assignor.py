"""The simple assignor of share groups: everybody reads, everything is read, and what can stay stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.coordinator.groups.share.share_assignor import ShareSpec, assign_simple
from tests.unit.coordinator.consumers import topic_id

COUNTS = {"a": 1, "b": 3, "c": 6}
IDS = {name: topic_id(name) for name in COUNTS}
ASSIGNABLE = {IDS[name]: frozenset(range(count)) for name, count in COUNTS.items()}

names = st.frozensets(st.sampled_from([*COUNTS, "missing"]), max_size=4)


def of_everybody(assignments: dict[str, dict[bytes, frozenset[int]]]) -> dict[bytes, set[int]]:
    read: dict[bytes, set[int]] = {}
    for share in assignments.values():
        for topic, partitions in share.items():
            read.setdefault(topic, set()).update(partitions)
    return read


@given(st.integers(1, 12), st.frozensets(st.sampled_from(list(COUNTS)), min_size=1))
def test_members_with_equal_subscriptions_share_partitions_evenly(count: int, topics: frozenset[str]) -> None:
    members = {f"m{number}": ShareSpec(topics, {}) for number in range(count)}
    shares = assign_simple(members, IDS, ASSIGNABLE)
    assert of_everybody(shares) == {IDS[name]: set(range(COUNTS[name])) for name in topics}
    sizes = [sum(len(partitions) for partitions in share.values()) for share in shares.values()]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1
    again = assign_simple({name: ShareSpec(topics, shares[name]) for name in members}, IDS, ASSIGNABLE)
    assert again == shares


@given(st.lists(names, min_size=1, max_size=8), st.lists(names, min_size=1, max_size=8))
def test_members_get_only_partitions_of_subscribed_topics(
    before: list[frozenset[str]], after: list[frozenset[str]]
) -> None:
    first = assign_simple(
        {f"m{number}": ShareSpec(topics, {}) for number, topics in enumerate(before)}, IDS, ASSIGNABLE
    )
    members = {f"m{number}": ShareSpec(topics, first.get(f"m{number}", {})) for number, topics in enumerate(after)}
    shares = assign_simple(members, IDS, ASSIGNABLE)
    wanted = {name for topics in after for name in topics}
    for member_id, share in shares.items():
        for name in wanted & COUNTS.keys():
            assert name in members[member_id].topic_names or not share.get(IDS[name])
    read = of_everybody(shares)
    for name in wanted & COUNTS.keys():
        assert read[IDS[name]] == set(range(COUNTS[name]))


def test_only_partitions_whose_state_is_kept_are_assigned() -> None:
    members = {"m": ShareSpec(frozenset({"b"}), {})}
    assert assign_simple(members, IDS, {IDS["b"]: {1}}) == {"m": {IDS["b"]: frozenset({1})}}
    assert assign_simple(members, IDS, {}) == {"m": {}}
