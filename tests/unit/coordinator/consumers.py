"""Consumer groups without a broker: the shard with a log in memory, and consumers that behave as clients do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_heartbeat import ConsumerHeartbeat
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator, GroupTypeSettings
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import KafkaError
from tailrace.protocol.internal_records.coordinator_records import encode_key
from tailrace.protocol.messages import ConsumerGroupHeartbeatResponse

GROUP = "group"


def image_of(topics: Mapping[str, int], offset: int = 1) -> MetadataImage:
    """Return an image with topics and their numbers of partitions. A topic's id comes from its name."""
    images = {
        name: TopicImage(
            name,
            topic_id(name),
            {
                number: PartitionRegistration(replicas=(1,), isr=(1,), leader=1, directories=(bytes(16),))
                for number in range(count)
            },
        )
        for name, count in topics.items()
    }
    return MetadataImage(offset=offset, topics=images, topics_by_id={image.id: image for image in images.values()})


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")


class Coordinator:
    """A shard of groups whose log is a list."""

    def __init__(self, topics: Mapping[str, int], settings: ConsumerSettings | None = None) -> None:
        self.image = image_of(topics)
        self.settings = settings or ConsumerSettings(assignment_interval_ms=0)
        self.log: list[CoordinatorRecord] = []
        self.now_ms = 1_000
        self._ids = 0
        self._open()

    def _open(self) -> None:
        self.timers = Timers()
        self.shard = GroupCoordinator(
            self.timers, GroupSettings(), self._new_id, lambda: self.image, GroupTypeSettings(lambda _: self.settings)
        )

    def _new_id(self) -> str:
        self._ids += 1
        return f"member-{self._ids}"

    def set_topics(self, topics: Mapping[str, int]) -> None:
        self.image = image_of(topics, self.image.offset + 1)

    def heartbeat(self, beat: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
        change = self.shard.consumer_heartbeat(beat, self.now_ms)
        self._append(change)
        return change.response

    def _append(self, change: StateChange[object]) -> None:
        for record in change.records:
            self.log.append(record)
            self.shard.replay(record, -1, -1)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        while (due := self.timers.take_due(self.now_ms)) is not None:
            change = due.operation(self.now_ms)
            if change is not None:
                self._append(change)

    def reload(self, *, compact: bool = False) -> None:
        """Load the log as another broker would."""
        if compact:
            latest = {encode_key(record.key): index for index, record in enumerate(self.log)}
            self.log = [self.log[index] for index in sorted(latest.values()) if self.log[index].value is not None]
        self._open()
        for record in self.log:
            self.shard.replay(record, -1, -1)
        for part in self.shard.loaded(self.now_ms):
            part(self.now_ms)

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group


@dataclass
class Consumer:
    """A client: it revokes partitions before it confirms that, and takes the assigned ones."""

    name: str
    topics: Iterable[str] = ("t",)
    pattern: str | None = None
    instance_id: str | None = None
    member_id: str = ""
    epoch: int = 0
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    reports_all: bool = True

    def beat(self) -> ConsumerHeartbeat:
        joins = self.epoch == 0
        owned: dict[bytes, list[int]] = {}
        for topic, partition in sorted(self.owned):
            owned.setdefault(topic, []).append(partition)
        reports_all = joins or self.reports_all
        return ConsumerHeartbeat(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            client_id=self.name,
            client_host="/127.0.0.1",
            instance_id=self.instance_id,
            rebalance_timeout_ms=60_000 if reports_all else -1,
            topic_names=frozenset(self.topics) if reports_all else None,
            topic_pattern=self.pattern if reports_all else None,
            owned=owned if reports_all else None,
        )

    def heartbeat(self, coordinator: Coordinator, *, is_answer_lost: bool = False) -> None:
        if not self.member_id:
            self.member_id = f"{self.name}-id"
        try:
            response = coordinator.heartbeat(self.beat())
        except KafkaError:
            self.fenced()
            return
        if is_answer_lost:
            return
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            }

    def fenced(self) -> None:
        """Drop all partitions, and join the group again."""
        self.owned = set()
        self.epoch = 0

    def leave(self, coordinator: Coordinator, epoch: int = -1) -> None:
        coordinator.heartbeat(self.beat()._replace(member_epoch=epoch))
        self.fenced()
