"""ShareOffsets: what administrators and the share coordinator's answers do to a share group's topics.

alter     begin anew at these offsets            ──► Initialization, then `initialized`
delete    of topics, or all of a group's         ──► Deletion, then `deleted` or the group's tombstones
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
    """State that the share coordinator is to forget; and topics of which there is none."""

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
        """The partitions whose state is kept; none for a group that there is not."""
        group = self._groups.get(group_id)
        return {} if not isinstance(group, ShareGroup) or group.topics is None else group.topics.assignable

    # Initialization

    def initialized(self, group_id: str, partitions: Partitions, now_ms: int) -> StateChange[None]:
        """The share coordinator keeps their state: they can be assigned."""
        self._shares.now_ms = now_ms
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or not partitions:
            return StateChange((), None)
        done = (group.topics or ShareTopics()).done(partitions, self._image())
        return StateChange(self._topics_change(group_id, done), None)

    def not_initialized(self, group_id: str, partitions: Partitions, now_ms: int) -> StateChange[None]:
        """It could not be: it is tried again with the next heartbeat."""
        self._shares.now_ms = now_ms
        group = self._groups.get(group_id)
        topics = group.topics if isinstance(group, ShareGroup) else None
        if topics is None or not topics.initializing:
            return StateChange((), None)
        return StateChange(self._topics_change(group_id, topics.given_up(partitions)), None)

    def alter(self, group_id: str, wanted: Mapping[str, Mapping[int, int]], now_ms: int) -> StateChange[Initialization]:
        """`wanted`: start offsets by topic and partition; partitions that there are not are left out."""
        self._shares.now_ms = now_ms
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
            there = {number: start for number, start in starts.items() if number < len(topic.partitions)}
            begun[topic.id] = TopicProgress(name, frozenset(there))
            if there:
                offsets[topic.id] = there
        records = self._topics_change(group_id, (group.topics or ShareTopics()).begun(begun)) if begun else []
        return StateChange(records, Initialization(group_id, group.epoch, offsets))

    # Deletion

    def delete_group(self, group_id: str) -> StateChange[Progress]:
        """A group is about to be deleted: what its state of partitions is, which has to go first."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return StateChange((), {})
        group.check_delete()
        if group.topics is None:
            return StateChange((), {})
        gone = group.topics.all_to_delete(self._image())
        return StateChange([all_deleting_record(group_id, gone)], gone)

    def delete(self, group_id: str, names: Collection[str], now_ms: int) -> StateChange[Deletion]:
        """Forget how far a group has come in topics."""
        self._shares.now_ms = now_ms
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
        self._shares.now_ms = now_ms
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or group.topics is None:
            return StateChange((), None)
        topics = group.topics
        left = ShareTopics(topics.initializing, topics.initialized, topics.deleting.difference(topic_ids))
        return StateChange(self._topics_change(group_id, left), None)

    def forget_topics(self, topic_ids: Collection[bytes], now_ms: int) -> StateChange[None] | None:
        """Topics were deleted: the share coordinator hears of that by itself."""
        self._shares.now_ms = now_ms
        gone = frozenset(topic_ids)
        records: list[CoordinatorRecord] = []
        for group in self._groups.values():
            if not isinstance(group, ShareGroup) or group.topics is None:
                continue
            topics = group.topics
            if not gone.isdisjoint({*topics.initializing, *topics.initialized, *topics.deleting}):
                records += self._topics_change(group.group_id, topics.without(gone))
        return StateChange(records, None, is_atomic=False) if records else None
