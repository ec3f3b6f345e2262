"""PatternSubscriptions: members that subscribe by a regular expression, and when its topics are looked up again.

A heartbeat starts a lookup and does not wait for it. The topics that a lookup finds move the group to its next epoch.
A group's patterns are looked up, at most every ten seconds, if

    A  one of them has not been looked up yet;
    B  a topic was created after the last lookup;
    C  the last lookup is older than the refresh interval.

A lookup runs in slices, because a cluster may have many topics.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from typing import Any, Final, NamedTuple

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_records import CONSUMER_RECORDS, pattern_record, pattern_tombstone
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.group import IsVisible
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage

Records = list[CoordinatorRecord]

PATTERN_REFRESH_MS_MIN: Final = 10_000
SLICE_INTERVAL_MS: Final = 20  # between two slices of a lookup, for other requests


class PatternChange(NamedTuple):
    is_changed: bool  # the member's pattern is another one
    changes_topics: bool  # so that the group subscribes to other topics now


class PatternSubscriptions:
    def __init__(
        self,
        find: Callable[[str], ConsumerGroup | None],
        timers: Timers,
        image: Callable[[], MetadataImage],
        hash_of: Callable[[Iterable[str]], int],
    ) -> None:
        """`find(group_id)` returns the group if it still exists; `hash_of(topics)` is the metadata hash of topics."""
        self._find = find
        self._timers = timers
        self._image = image
        self._hash_of = hash_of
        self._topics: Mapping[str, Any] = {}
        self._topics_version = -1  # of the latest image with new topics

    def change(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        settings: ConsumerSettings,
        records: Records,
        now_ms: int,
        is_visible: IsVisible,
    ) -> PatternChange:
        """Compare the member's pattern with the one before, and start a lookup if one is due.

        A new pattern changes no topics yet. It is looked up later, among the topics that this client may describe, and
        the result bumps the group epoch.
        """
        old, new = before.topic_pattern, member.topic_pattern
        changed = old != new
        counts = False
        is_new = False
        if changed:
            if old and group.subscriptions.users(old) == 1:
                records.append(pattern_tombstone(group.group_id, old))
            if new:
                is_new = group.subscriptions.users(new) == 0
                if is_new:  # a late import: most groups have no pattern, and RE2 takes 40 ms to load
                    from tailrace.coordinator.groups.consumer.topic_patterns import check_pattern

                    check_pattern(new)
                counts = not is_new and new in group.patterns
            else:
                counts = bool(old)
        patterns = group.patterns_with(member)
        key = ("patterns", group.group_id)
        if patterns and key not in self._timers and self._is_lookup_due(group, patterns, settings, now_ms):
            self._timers.schedule(key, now_ms, lambda now_ms: self._look_up(key, group.group_id, is_visible, now_ms))
        return PatternChange(changed, counts)

    def _is_lookup_due(self, group: ConsumerGroup, patterns: set[str], settings: ConsumerSettings, now_ms: int) -> bool:
        """Return True in the cases A, B and C above."""
        last = min(group.patterns.values(), key=lambda resolved: resolved.timestamp_ms, default=None)
        if last is None:
            return True
        if now_ms <= last.timestamp_ms + PATTERN_REFRESH_MS_MIN:
            return False
        if patterns != group.patterns.keys() or now_ms > last.timestamp_ms + settings.pattern_refresh_ms:
            return True
        return last.version < self._version_with_new_topics()

    def _version_with_new_topics(self) -> int:
        """Return the version of the latest image that has a topic which the image before it did not have."""
        image = self._image()
        if image.topics is not self._topics:
            if not image.topics.keys() <= self._topics.keys():
                self._topics_version = image.offset
            self._topics = image.topics
        return self._topics_version

    def _look_up(self, key: Hashable, group_id: str, is_visible: IsVisible, now_ms: int) -> StateChange[None] | None:
        group = self._find(group_id)
        if group is None:
            return None
        from tailrace.coordinator.groups.consumer.topic_patterns import PatternLookup

        self._version_with_new_topics()  # topics that this lookup sees are not new afterwards
        image = self._image()
        lookup = PatternLookup(group.subscriptions.patterns(), image.topics, is_visible)

        def run_slice(now_ms: int) -> StateChange[None] | None:
            group = self._find(group_id)
            if group is None:
                return None
            if lookup.run_slice():
                return self._store_matches(group, lookup.found, image.offset, now_ms)
            self._timers.schedule(key, now_ms + SLICE_INTERVAL_MS, run_slice)
            return None

        return run_slice(now_ms)

    def _store_matches(
        self, group: ConsumerGroup, found: Mapping[str, Set[str]], version: int, now_ms: int
    ) -> StateChange[None]:
        """Store what a lookup in the image of that version found, and bump the group epoch if anything has changed."""
        found = {pattern: topics for pattern, topics in found.items() if group.subscriptions.users(pattern)}
        records: Records = []
        topics = group.subscriptions.named_among(self._image().topics).union(*found.values())
        bump = False
        for pattern, matching in found.items():
            known = group.patterns.get(pattern)
            bump |= (known.topics if known is not None else frozenset()) != matching
            records.append(pattern_record(group.group_id, pattern, matching, version, now_ms))
        metadata_hash = self._hash_of(topics)
        if bump or metadata_hash != group.metadata_hash:
            records.append(CONSUMER_RECORDS.group_record(group.group_id, group.epoch + 1, metadata_hash))
        return StateChange(records, None)
