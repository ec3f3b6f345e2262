"""ShareOffsets: changes of a share group's topics by administrators and by responses of the share coordinator.

alter     set start offsets                      ──► Initialization, then `initialized`
delete    delete the offsets of topics or groups ──► Deletion, then `deleted` or the group's tombstones
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from typing import NamedTuple

from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.share.share_group import ShareGroup
from tailrace.coordinator.groups.share.share_groups import ShareGroups
from tailrace.coordinator.groups.share.share_heartbeat import Initialization, StartOffsets
from tailrace.coordinator.groups.share.share_records import all_deleting_record, topics_record
from tailrace.coordinator.groups.share.share_topics import Partitions, Progress, ShareTopics, TopicProgress
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError


class Deletion(NamedTuple):
    """Partitions whose state the share coordinator has to delete, and topics without any state."""

    partitions: Partitions
    unknown: Sequence[str] = ()


class ShareOffsets:
    def __init__(
        self, groups: MutableMapping[str, Group], shares: ShareGroups, image: Callable[[], MetadataImage]
    ) -> None:
        self._groups = groups
        self._shares = shares
        self._image = image

    def _topics_change(self, group_id: str, topics: ShareTopics) -> list[CoordinatorRecord]:
        return [topics_record(group_id, topics, self._image())]

    def kept(self, group_id: str) -> Partitions:
        """Return the partitions whose state is kept. A group that does not exist has none."""
        group = self._groups.get(group_id)
        return {} if not isinstance(group, ShareGroup) or group.topics is None else group.topics.assignable

    # Initialization

    def initialized(self, group_id: str, partitions: Partitions, now_ms: int) -> StateChange[None]:
        """Note that the share coordinator has initialized the partitions. They can be assigned now."""
        self._shares.begin_operation(now_ms)
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or not partitions:
            return StateChange((), None)
        done = (group.topics or ShareTopics()).done(partitions, self._image())
        return StateChange(self._topics_change(group_id, done), None)

    def not_initialized(self, group_id: str, partitions: Partitions, now_ms: int) -> StateChange[None]:
        """Note that the initialization failed. The next heartbeat retries it."""
        self._shares.begin_operation(now_ms)
        group = self._groups.get(group_id)
        topics = group.topics if isinstance(group, ShareGroup) else None
        if topics is None or not topics.initializing:
            return StateChange((), None)
        return StateChange(self._topics_change(group_id, topics.given_up(partitions)), None)

    def alter(self, group_id: str, wanted: Mapping[str, Mapping[int, int]], now_ms: int) -> StateChange[Initialization]:
        """Set start offsets, by topic and partition. Partitions that do not exist are left out."""
        self._shares.begin_operation(now_ms)
        group = self._shares.group_or_new(group_id)
        if group.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        topics = self._image().topics
        begun: dict[bytes, TopicProgress] = {}
        offsets: StartOffsets = {}
        for name, starts in wanted.items():
            topic = topics.get(name)
            if topic is None:
                continue
            existing = {number: start for number, start in starts.items() if number < len(topic.partitions)}
            begun[topic.id] = TopicProgress(name, frozenset(existing))
            if existing:
                offsets[topic.id] = existing
        records = self._topics_change(group_id, (group.topics or ShareTopics()).begun(begun)) if begun else []
        return StateChange(records, Initialization(group_id, group.epoch, offsets))

    # Deletion

    def delete_group(self, group_id: str) -> StateChange[Progress]:
        """Prepare the deletion of a group. Return the partitions whose state has to be deleted first."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return StateChange((), {})
        group.check_delete()
        if group.topics is None:
            return StateChange((), {})
        to_delete = group.topics.all_to_delete(self._image())
        return StateChange([all_deleting_record(group_id, to_delete)], to_delete)

    def delete(self, group_id: str, names: Collection[str], now_ms: int) -> StateChange[Deletion]:
        """Prepare the deletion of the group's offsets in topics."""
        self._shares.begin_operation(now_ms)
        group = self._shares.group(group_id)
        group.check_delete()
        if group.topics is None:
            return StateChange((), Deletion({}))
        image = self._image()
        partitions: dict[bytes, frozenset[int]] = {}
        unknown = []
        for name in names:
            topic = image.topics.get(name)
            found = None if topic is None else group.topics.to_delete(topic.id, image)
            if topic is None or found is None:
                unknown.append(name)
            else:
                partitions[topic.id] = found
        records = self._topics_change(group_id, group.topics.with_deleting(partitions))
        return StateChange(records, Deletion(partitions, unknown))

    def deleted(self, group_id: str, topic_ids: Collection[bytes], now_ms: int) -> StateChange[None]:
        self._shares.begin_operation(now_ms)
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or group.topics is None:
            return StateChange((), None)
        topics = group.topics
        left = ShareTopics(topics.initializing, topics.initialized, topics.deleting.difference(topic_ids))
        return StateChange(self._topics_change(group_id, left), None)

    def forget_topics(self, topic_ids: Collection[bytes], now_ms: int) -> StateChange[None] | None:
        """Remove deleted topics from all groups. The share coordinator learns of the deletion by itself."""
        self._shares.begin_operation(now_ms)
        removed = frozenset(topic_ids)
        records: list[CoordinatorRecord] = []
        for group in self._groups.values():
            if not isinstance(group, ShareGroup) or group.topics is None:
                continue
            topics = group.topics
            if not removed.isdisjoint({*topics.initializing, *topics.initialized, *topics.deleting}):
                records += self._topics_change(group.group_id, topics.without(removed))
        return StateChange(records, None, is_atomic=False) if records else None
