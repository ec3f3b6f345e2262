"""Subscriptions: how many members of a group subscribe to each topic, counted as members come and go.

A group may have thousands of members with thousands of topics each. So a change of one member must not look at the
others, and names of topics that do not exist are not iterated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple


class Subscription(NamedTuple):
    """The topics of one member."""

    topics: frozenset[str]
    pattern: str = ""


class Subscriptions:
    def __init__(self) -> None:
        self._named: dict[str, int] = {}  # topic → how many members name it
        self._matched: dict[str, int] = {}  # topic → how many patterns in use match it
        self._matches: dict[str, frozenset[str]] = {}  # pattern → its topics, once it has been looked up
        self._patterns: dict[str, int] = {}  # pattern → how many members have it

    def replace(self, before: Subscription | None, after: Subscription | None) -> None:
        """Count a member that has joined, changed or left."""
        removed = () if before is None else (before,)
        _add(self._matched, self._match_changes(removed, after))
        _add(self._patterns, _pattern_changes(removed, after))
        if before is None or after is None or before.topics is not after.topics:
            _add(self._named, _name_changes(removed, after))

    def put_matches(self, pattern: str, topics: frozenset[str] | None) -> None:
        """Store the topics of a pattern, or remove them."""
        known = self._matches.pop(pattern, None)
        if topics is not None:
            self._matches[pattern] = topics
        if pattern in self._patterns:
            changes = Counter(topics or ())
            changes.subtract(known or ())
            _add(self._matched, changes)

    def __contains__(self, topic: str) -> bool:
        return topic in self._named or topic in self._matched

    def users(self, pattern: str) -> int:
        """Return the number of members with this pattern."""
        return self._patterns.get(pattern, 0)

    def patterns(self, removed: Iterable[Subscription] = (), added: Subscription | None = None) -> set[str]:
        """Return the patterns in use after some members have left and one has joined."""
        found = set(self._patterns)
        for pattern, change in _pattern_changes(removed, added).items():
            if self._patterns.get(pattern, 0) + change > 0:
                found.add(pattern)
            else:
                found.discard(pattern)
        return found

    def named_among(self, topics: Collection[str]) -> set[str]:
        """Return those of these topics that members name."""
        return intersection(self._named, topics)

    def among(
        self, topics: Collection[str], removed: Collection[Subscription] = (), added: Subscription | None = None
    ) -> set[str]:
        """Return the subscribed ones of these topics after some members have left and one has joined."""
        existing = [Subscription(frozenset(intersection(one.topics, topics))) for one in removed]
        added_existing = None if added is None else Subscription(frozenset(intersection(added.topics, topics)))
        named, matched = _name_changes(existing, added_existing), self._match_changes(removed, added)
        found = intersection(self._named, topics) | intersection(self._matched, topics)
        for topic in named.keys() | intersection(matched.keys(), topics):
            names = self._named.get(topic, 0) + named.get(topic, 0)
            if names + self._matched.get(topic, 0) + matched.get(topic, 0) > 0:
                found.add(topic)
            else:
                found.discard(topic)
        return found

    def _match_changes(self, removed: Iterable[Subscription], added: Subscription | None) -> Counter[str]:
        """Return the change of `_matched` by patterns that get their first user or lose their last one."""
        changes: Counter[str] = Counter()
        for pattern, change in _pattern_changes(removed, added).items():
            users = self._patterns.get(pattern, 0)
            if not users and change > 0:
                changes.update(self._matches.get(pattern, ()))
            elif users and users + change <= 0:
                changes.subtract(self._matches.get(pattern, ()))
        return changes


class SharedNames:
    """Equal sets of names, each stored once. They take less memory, and are compared by identity."""

    def __init__(self) -> None:
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._users: Counter[frozenset[str]] = Counter()

    def share(self, names: frozenset[str]) -> frozenset[str]:
        """Return the stored set for a new user."""
        shared = self._sets.setdefault(names, names)
        self._users[shared] += 1
        return shared

    def release(self, names: frozenset[str]) -> None:
        """Remove a user of a set, and the set with its last user."""
        self._users[names] -= 1
        if not self._users[names]:
            del self._users[names], self._sets[names]


def _name_changes(removed: Iterable[Subscription], added: Subscription | None) -> Counter[str]:
    changes = Counter(() if added is None else added.topics)
    for one in removed:
        changes.subtract(one.topics)
    return changes


def _pattern_changes(removed: Iterable[Subscription], added: Subscription | None) -> Counter[str]:
    changes = Counter([added.pattern] if added is not None and added.pattern else ())
    changes.subtract(one.pattern for one in removed if one.pattern)
    return changes


def _add(counts: dict[str, int], changes: Counter[str]) -> None:
    for key, change in changes.items():
        count = counts.get(key, 0) + change
        if count > 0:
            counts[key] = count
        else:
            counts.pop(key, None)


def intersection(names: Collection[str], topics: Collection[str]) -> set[str]:
    """Return the names that are in both collections. Only the smaller one is iterated."""
    few, many = (topics, names) if len(topics) < len(names) else (names, topics)
    return {topic for topic in few if topic in many}
