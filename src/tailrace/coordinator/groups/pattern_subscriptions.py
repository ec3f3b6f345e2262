"""PatternSubscriptions: members that subscribe by a regular expression, and when its topics are looked up again.

A heartbeat does not wait for that: a new pattern is looked up right after it, and what is found moves the group to its
next epoch. It is looked up again when there are other topics, and now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tailrace.coordinator.groups import consumer_records as records_of
from tailrace.coordinator.groups.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.heartbeat import Sees, sees_all
from tailrace.coordinator.groups.metadata_hash import TopicHashes
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image import MetadataImage

Records = list[CoordinatorRecord]

PATTERN_REFRESH_MS_MIN = 10_000  # patterns are not looked up again before this, however many heartbeats ask for it


class PatternSubscriptions:
    def __init__(
        self,
        groups: Mapping[str, Group],
        timers: Timers,
        image: Callable[[], MetadataImage],
        hashes: TopicHashes,
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._image = image
        self._hashes = hashes

    def change(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        settings: ConsumerSettings,
        records: Records,
        now_ms: int,
        sees: Sees,
    ) -> tuple[bool, bool]:
        """Whether the member's pattern has changed, and whether that changes what the group subscribes to now. A new
        one does not: it is looked up later, among the topics that this client sees, and is then a change of its own."""
        old, new = before.topic_pattern, member.topic_pattern
        changed = old != new
        counts = False
        is_new = False
        if changed:
            if old and group.pattern_count(old) == 1:
                records.append(records_of.pattern_tombstone(group.group_id, old))
            if new:
                is_new = group.pattern_count(new) == 0
                if is_new:  # imported when needed: most groups have no pattern, and RE2 takes its time to load
                    from tailrace.coordinator.groups.topic_patterns import check_pattern

                    check_pattern(new)
                counts = not is_new and new in group.patterns
            else:
                counts = bool(old)
        patterns = {one.topic_pattern for one in group.members_with(member).values() if one.topic_pattern}
        if patterns and (is_new or self._are_stale(group, patterns, settings, now_ms)):
            key = ("patterns", group.group_id)
            if key not in self._timers:
                self._timers.schedule(key, now_ms, lambda now_ms: self._look_up(group.group_id, sees, now_ms))
        return changed, counts

    def _are_stale(self, group: ConsumerGroup, patterns: set[str], settings: ConsumerSettings, now_ms: int) -> bool:
        last = min(group.patterns.values(), key=lambda resolved: resolved.timestamp_ms, default=None)
        if last is None:
            return True
        if now_ms <= last.timestamp_ms + PATTERN_REFRESH_MS_MIN:
            return False
        if patterns != group.patterns.keys() or now_ms > last.timestamp_ms + settings.pattern_refresh_ms:
            return True
        return group.looked_at_topics is not self._image().topics

    def _look_up(self, group_id: str, sees: Sees, now_ms: int) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        from tailrace.coordinator.groups.topic_patterns import matching_topics

        image = self._image()
        patterns = {member.topic_pattern for member in group.members.values() if member.topic_pattern}
        found = matching_topics(patterns, image.topics.keys())
        if sees is not sees_all:
            found = {pattern: frozenset(filter(sees, topics)) for pattern, topics in found.items()}
        records: Records = []
        topics = set().union(*(member.topic_names for member in group.members.values()), *found.values())
        bump = False
        for pattern, matching in found.items():
            known = group.patterns.get(pattern)
            bump |= (known.topics if known is not None else frozenset()) != matching
            records.append(records_of.pattern_record(group_id, pattern, matching, image.offset, now_ms))
        metadata_hash = self._hashes.of(topics, image)
        if bump or metadata_hash != group.metadata_hash:
            records.append(records_of.epoch_record(group_id, group.epoch + 1, metadata_hash))
        group.looked_at_topics = image.topics
        return StateChange(records, None)
