"""Subscriptions are counted as members come and go: the counts equal those of looking at all members."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.coordinator.groups.epoch.subscriptions import Subscription, Subscriptions

TOPICS = [f"t{number}" for number in range(8)]
PATTERNS = ["", "", "a.*", "b.*"]


class Looked:
    """The same facts from all members."""

    def __init__(self) -> None:
        self.members: dict[int, Subscription] = {}
        self.matches: dict[str, frozenset[str]] = {}

    def topics(self, members: list[Subscription]) -> set[str]:
        found = {topic for member in members for topic in member.topics}
        for pattern in {member.pattern for member in members}:
            found |= self.matches.get(pattern, frozenset())
        return found


def drawn(dice: Random) -> Subscription:
    return Subscription(frozenset(dice.sample(TOPICS, dice.randrange(4))), dice.choice(PATTERNS))


@pytest.mark.parametrize("seed", range(20))
def test_counts_equal_the_subscriptions_of_all_members(seed: int) -> None:
    dice = Random(seed)
    counted, looked = Subscriptions(), Looked()
    for _ in range(200):
        existing = set(dice.sample(TOPICS, dice.randrange(9)))
        key = dice.randrange(6)
        before, after = looked.members.get(key), drawn(dice) if dice.random() < 0.7 else None
        others = [one for other, one in looked.members.items() if other != key]
        gone = [] if before is None else [before]
        then = others if after is None else [*others, after]
        assert counted.among(existing, gone, after) == looked.topics(then) & existing
        assert counted.patterns(gone, after) == {one.pattern for one in then} - {""}
        counted.replace(before, after)
        looked.members.pop(key, None)
        if after is not None:
            looked.members[key] = after
        if dice.random() < 0.3:
            pattern = dice.choice(PATTERNS[2:])
            matches = frozenset(dice.sample(TOPICS, 3)) if dice.random() < 0.7 else None
            counted.put_matches(pattern, matches)
            looked.matches.pop(pattern, None)
            if matches is not None:
                looked.matches[pattern] = matches
        members = list(looked.members.values())
        assert {topic for topic in TOPICS if topic in counted} == looked.topics(members)
        assert counted.among(TOPICS) == looked.topics(members)
        assert counted.named_among(existing) == {topic for one in members for topic in one.topics} & existing
        assert [counted.users(one) for one in PATTERNS[2:]] == [
            sum(member.pattern == one for member in members) for one in PATTERNS[2:]
        ]
