"""Groups: the group coordinator of a broker, with its log and its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.group_limits import check_group_limits, clamp_group_config
from tailrace.broker.coordination.coordinator_topics import CONSUMER_OFFSETS
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.partition_writer import PartitionWriter
from tailrace.coordinator.groups.consumer.consumer_assignors import ASSIGNORS
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.epoch.target_computations import Submit
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator, GroupTypeSettings
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.groups.share import share_assignor
from tailrace.coordinator.groups.share.share_settings import ShareSettings
from tailrace.coordinator.groups.streams.streams_settings import StreamsSettings
from tailrace.coordinator.runtime import Answer, CoordinatorRuntime, Refuse
from tailrace.coordinator.shard import StateChange
from tailrace.metadata.image.features import GROUP_VERSION, STREAMS_VERSION
from tailrace.metadata.image.image import ConfigResource, MetadataImage, ResourceType, TopicImage
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol import json_form
from tailrace.records.batch import Codec
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory

R = TypeVar("R")

_SHARE_LIMITED = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")
_FEATURES = {"consumer": GROUP_VERSION, "streams": STREAMS_VERSION}


class Groups:
    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        partitions: HostedPartitions,
        purgatory: Purgatory,
        coordinators: Coordinators,
        appended: Callable[[TopicPartition, int], None],
        new_id: Callable[[], bytes],
        submit: Submit,
    ) -> None:
        check_group_limits(config)
        self.settings = broker_group_settings(config)
        self._consumer_settings = broker_consumer_settings(config)
        self._streams_settings = broker_streams_settings(config)
        self._share_settings = broker_share_settings(config)
        self._config = config
        self._coordinators = coordinators
        self._image = image
        self.runtime: CoordinatorRuntime[GroupCoordinator] = CoordinatorRuntime(
            CONSUMER_OFFSETS,
            PartitionWriter(partitions, appended),
            purgatory,
            lambda _, timers: GroupCoordinator(
                timers,
                self.settings,
                lambda: hex_uuid_text(new_id()),
                image,
                GroupTypeSettings(self.consumer_settings, self.share_settings, self.streams_settings),
                lambda: json_form.base64_uuid_text(new_id()),
                submit,
            ),
            write_timeout_ms=config.integer("offsets.commit.timeout.ms"),
            codec=Codec(config.integer("offsets.topic.compression.codec")),
            replay_of=lambda shard, producer_id: shard.offsets.replay(producer_id),
        )
        coordinators.add(self.runtime)

    def partition_of(self, group_id: str) -> int:
        """Return the group's partition of `__consumer_offsets`, or -1 if that topic does not exist."""
        return self._coordinators.partition_of(CONSUMER_OFFSETS, group_id, self._image())

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names of the server-side assignors of consumer groups; the first is the default."""
        return self._consumer_settings.assignors

    def consumer_settings(self, group_id: str) -> ConsumerSettings:
        """Return the settings of a group: its own, and the broker's for the rest."""
        image = self._image()
        interval_ms = self._config.current_integer("group.consumer.assignment.interval.ms", image)
        own = clamp_group_config(self._config, image.config(ConfigResource(ResourceType.GROUP, group_id)))
        if not own and interval_ms == self._consumer_settings.assignment_interval_ms:
            return self._consumer_settings
        base = self._consumer_settings
        return replace(
            base,
            session_timeout_ms=int(own.get("consumer.session.timeout.ms", base.session_timeout_ms)),
            heartbeat_interval_ms=int(own.get("consumer.heartbeat.interval.ms", base.heartbeat_interval_ms)),
            assignment_interval_ms=int(own.get("consumer.assignment.interval.ms", interval_ms)),
        )

    def share_settings(self, group_id: str) -> ShareSettings:
        """Return the settings of a group: its own, and the broker's for the rest."""
        image = self._image()
        base = self._share_settings
        own = clamp_group_config(self._config, image.config(ConfigResource(ResourceType.GROUP, group_id)))
        interval_ms = self._config.current_integer("group.share.assignment.interval.ms", image)
        return replace(
            base,
            session_timeout_ms=int(own.get("share.session.timeout.ms", base.session_timeout_ms)),
            heartbeat_interval_ms=int(own.get("share.heartbeat.interval.ms", base.heartbeat_interval_ms)),
            assignment_interval_ms=int(own.get("share.assignment.interval.ms", interval_ms)),
        )

    def streams_settings(self, group_id: str) -> StreamsSettings:
        """Return the settings of a group: its own, and the broker's for the rest."""
        image = self._image()
        base = self._streams_settings
        interval_ms = self._config.current_integer("group.streams.assignment.interval.ms", image)
        own = clamp_group_config(self._config, image.config(ConfigResource(ResourceType.GROUP, group_id)))
        if not own and interval_ms == base.assignment_interval_ms:
            return base
        return replace(
            base,
            session_timeout_ms=int(own.get("streams.session.timeout.ms", base.session_timeout_ms)),
            heartbeat_interval_ms=int(own.get("streams.heartbeat.interval.ms", base.heartbeat_interval_ms)),
            assignment_interval_ms=int(own.get("streams.assignment.interval.ms", interval_ms)),
            initial_rebalance_delay_ms=int(
                own.get("streams.initial.rebalance.delay.ms", base.initial_rebalance_delay_ms)
            ),
            standby_replicas=int(own.get("streams.num.standby.replicas", base.standby_replicas)),
        )

    def is_enabled(self, kind: str) -> bool:
        """Return True if groups of a kind (consumer, streams) are enabled by the config and the cluster's features."""
        has_feature = self._image().features.get(_FEATURES[kind], 0) >= 1
        return has_feature and kind in self._config.names("group.coordinator.rebalance.protocols")

    def write(
        self,
        group_id: str,
        operation: Callable[[GroupCoordinator], StateChange[R]],
        answer: Answer[R],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        """Change a group's state at its coordinator. `answer` or `refuse` is called, now or later."""
        self.runtime.write(self.partition_of(group_id), operation, answer, refuse, now_ms)

    def read(
        self,
        group_id: str,
        operation: Callable[[GroupCoordinator], R],
        answer: Answer[R],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        self.runtime.read(self.partition_of(group_id), operation, answer, refuse, now_ms)

    def topics_deleted(self, topics: Sequence[TopicImage], now_ms: int) -> None:
        """Delete the committed offsets of deleted topics."""
        names = frozenset(topic.name for topic in topics)
        ids = frozenset(topic.id for topic in topics)
        self.runtime.change_all(lambda shard, end, now_ms: shard.deleted_topics.add(names, end, now_ms), now_ms)
        self.runtime.change_all(lambda shard, _, now_ms: shard.share_offsets.forget_topics(ids, now_ms), now_ms)


def broker_group_settings(config: BrokerConfig) -> GroupSettings:
    return GroupSettings(
        session_timeout_ms_min=config.integer("group.min.session.timeout.ms"),
        session_timeout_ms_max=config.integer("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        size_max=config.integer("group.max.size"),
        offset_metadata_size_max=config.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=config.integer("offsets.retention.minutes") * 60_000,
        retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
    )


def broker_consumer_settings(config: BrokerConfig) -> ConsumerSettings:
    assignors = config.names("group.consumer.assignors")
    for name in assignors:
        if name not in ASSIGNORS:
            raise InvalidConfig(f"group.consumer.assignors: {name} is not supported; use {' or '.join(ASSIGNORS)}")
    return ConsumerSettings(
        session_timeout_ms=config.integer("group.consumer.session.timeout.ms"),
        heartbeat_interval_ms=config.integer("group.consumer.heartbeat.interval.ms"),
        assignment_interval_ms=config.integer("group.consumer.assignment.interval.ms"),
        size_max=config.integer("group.consumer.max.size"),
        pattern_refresh_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
        assignors=assignors,
        classic_size_max=config.integer("group.max.size"),
        migration_policy=(config.text("group.consumer.migration.policy") or "").lower(),
    )


def broker_share_settings(config: BrokerConfig) -> ShareSettings:
    if config.names("group.share.assignors") != (share_assignor.NAME,):
        raise InvalidConfig(f"group.share.assignors: only {share_assignor.NAME} is supported")
    for name in _SHARE_LIMITED:
        low, high = f"group.share.min.{name}", f"group.share.max.{name}"
        if not config.integer(low) <= config.integer(f"group.share.{name}") <= config.integer(high):
            raise InvalidConfig(
                f"group.share.{name} is {config.integer(f'group.share.{name}')}; it must be between {low} "
                f"({config.integer(low)}) and {high} ({config.integer(high)})"
            )
    if config.integer("group.share.max.share.sessions") < config.integer("group.share.max.size"):
        raise InvalidConfig(
            f"group.share.max.share.sessions is {config.integer('group.share.max.share.sessions')}; it must be "
            f"at least group.share.max.size ({config.integer('group.share.max.size')})"
        )
    return ShareSettings(
        session_timeout_ms=config.integer("group.share.session.timeout.ms"),
        heartbeat_interval_ms=config.integer("group.share.heartbeat.interval.ms"),
        assignment_interval_ms=config.integer("group.share.assignment.interval.ms"),
        size_max=config.integer("group.share.max.size"),
        initialize_retry_ms=max(
            config.integer("group.share.initialize.retry.interval.ms"), config.integer("offsets.commit.timeout.ms")
        ),
    )


def broker_streams_settings(config: BrokerConfig) -> StreamsSettings:
    return StreamsSettings(
        session_timeout_ms=config.integer("group.streams.session.timeout.ms"),
        heartbeat_interval_ms=config.integer("group.streams.heartbeat.interval.ms"),
        assignment_interval_ms=config.integer("group.streams.assignment.interval.ms"),
        initial_rebalance_delay_ms=config.integer("group.streams.initial.rebalance.delay.ms"),
        standby_replicas=config.integer("group.streams.num.standby.replicas"),
        size_max=config.integer("group.streams.max.size"),
    )


def hex_uuid_text(value: bytes) -> str:
    """Return sixteen bytes in the text form of a UUID."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
