"""TopicsDelta: the changes of topics and their partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.layered_map import changed
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.protocol import messages


class TopicDelta:
    """One topic that is new or has changed partitions."""

    __slots__ = ("before", "changes", "id", "name")

    def __init__(self, name: str, topic_id: bytes, before: TopicImage | None) -> None:
        self.name = name
        self.id = topic_id
        self.before = before  # None: created by this delta
        self.changes: dict[int, PartitionRegistration] = {}

    def partition(self, number: int) -> PartitionRegistration | None:
        """Return the partition after the records so far, or None."""
        found = self.changes.get(number)
        return self.partition_before(number) if found is None else found

    def partition_before(self, number: int) -> PartitionRegistration | None:
        return None if self.before is None else self.before.partitions.get(number)

    def partitions(self) -> Mapping[int, PartitionRegistration]:
        return self.changes if self.before is None else changed(self.before.partitions, self.changes)

    def merge(self, change: messages.PartitionChangeRecord) -> None:
        partition = self.partition(change.partition_id)
        if partition is None:
            raise InconsistentMetadata(f"partition {change.partition_id} of {self.name} is changed but does not exist")
        self.changes[change.partition_id] = partition.merge(change)

    def clear_elr(self) -> None:
        nobody = messages.PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
        for number, partition in list(self.partitions().items()):
            if partition.elr or partition.last_known_elr:
                self.changes[number] = partition.merge(nobody)

    def apply(self) -> TopicImage:
        return TopicImage(self.name, self.id, self.partitions())


class LocalReplica(NamedTuple):
    """A replica on this broker, and its partition now and before."""

    topic_id: bytes
    partition: TopicPartition
    now: PartitionRegistration
    before: PartitionRegistration | None


class LocalChanges(NamedTuple):
    """The changes of one broker's replicas in a delta."""

    leaders: list[LocalReplica]
    followers: list[LocalReplica]
    deleted: list[tuple[TopicPartition, bytes]]  # with their topic ids


class TopicsDelta:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.changed: dict[bytes, TopicDelta] = {}
        self.deleted: dict[bytes, TopicImage] = {}  # topics that the image before had
        self._created: dict[str, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self.changed or self.deleted)

    @property
    def created(self) -> Mapping[str, bytes]:
        """Ids of new topics by name. A deleted topic may have had the same name."""
        return self._created

    def id_of(self, name: str) -> bytes | None:
        """Return the id of a topic after the records so far, or None."""
        if name in self._created:
            return self._created[name]
        before = self._image.topics.get(name)
        return None if before is None or before.id in self.deleted else before.id

    def create(self, record: messages.TopicRecord) -> None:
        if self.id_of(record.name) is not None:
            raise InconsistentMetadata(f"topic {record.name} is created but exists already")
        if record.topic_id in self.changed or record.topic_id in self._image.topics_by_id:
            raise InconsistentMetadata(
                f"topic {record.name} is created with the id of another topic, {record.topic_id.hex()}"
            )
        self.changed[record.topic_id] = TopicDelta(record.name, record.topic_id, None)
        self._created[record.name] = record.topic_id

    def topic(self, topic_id: bytes) -> TopicDelta:
        found = self.changed.get(topic_id)
        if found is None:
            before = self._image.topics_by_id.get(topic_id)
            if before is None or topic_id in self.deleted:
                raise InconsistentMetadata(f"no topic has the id {topic_id.hex()}")
            found = self.changed[topic_id] = TopicDelta(before.name, topic_id, before)
        return found

    def put_partition(self, record: messages.PartitionRecord) -> None:
        self.topic(record.topic_id).changes[record.partition_id] = PartitionRegistration.from_record(record)

    def change_partition(self, record: messages.PartitionChangeRecord) -> None:
        self.topic(record.topic_id).merge(record)

    def clear_elr(self, record: messages.ClearElrRecord) -> None:
        """Clear the ELR of one topic, or of all if the record names none."""
        if record.topic_name:
            topic_id = self.id_of(record.topic_name)
            if topic_id is None:
                raise InconsistentMetadata(f"topic {record.topic_name} does not exist; its ELR cannot be cleared")
            self.topic(topic_id).clear_elr()
            return
        for topic_id in [*self._image.topics_by_id, *self._created.values()]:
            if topic_id not in self.deleted:
                self.topic(topic_id).clear_elr()

    def remove(self, topic_id: bytes) -> str:
        """Remove a topic; return its name."""
        name = self.topic(topic_id).name
        del self.changed[topic_id]
        if self._created.get(name) == topic_id:
            del self._created[name]
        before = self._image.topics_by_id.get(topic_id)
        if before is not None:
            self.deleted[topic_id] = before
        return name

    def apply(self) -> tuple[Mapping[str, TopicImage], Mapping[bytes, TopicImage]]:
        """Return the topics by name and by id."""
        if not self:
            return self._image.topics, self._image.topics_by_id
        by_name: dict[str, TopicImage | None] = {before.name: None for before in self.deleted.values()}
        by_id: dict[bytes, TopicImage | None] = dict.fromkeys(self.deleted)
        for topic_id, delta in self.changed.items():
            by_name[delta.name] = by_id[topic_id] = delta.apply()
        return changed(self._image.topics, by_name), changed(self._image.topics_by_id, by_id)

    def local_changes(self, broker_id: BrokerId) -> LocalChanges:
        """Return the replicas of a broker that are new, changed (new partition epoch) or deleted."""
        leaders: list[LocalReplica] = []
        followers: list[LocalReplica] = []
        deleted = [
            (TopicPartition(before.name, number), topic_id)
            for topic_id, before in self.deleted.items()
            for number, partition in before.partitions.items()
            if broker_id in partition.replicas
        ]
        for topic_id, delta in self.changed.items():
            for number, now in delta.changes.items():
                name, before = TopicPartition(delta.name, number), delta.partition_before(number)
                if broker_id not in now.replicas:
                    if before is not None and broker_id in before.replicas:
                        deleted.append((name, topic_id))
                elif before is None or before.partition_epoch != now.partition_epoch:
                    role = leaders if now.leader == broker_id else followers
                    role.append(LocalReplica(topic_id, name, now, before))
        return LocalChanges(leaders, followers, deleted)
