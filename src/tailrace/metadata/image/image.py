"""MetadataImage: the content of the metadata log up to one offset; immutable.

A new image shares with its predecessor everything that a delta left unchanged, down to single topics. So the cost of a
new image depends on the size of the change, and comparing by identity finds the differences. Mappings are dicts that
nobody writes to any more, and large ones are layered (`layered_map.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tailrace.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    RecordVersions,
    record_versions,
)
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.metadata.image.registrations import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerRegistration,
    ControllerRegistration,
)
from tailrace.model.acls import Acl
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicPartition
from tailrace.protocol import messages


class ResourceType(IntEnum):
    """The type of resource that a configuration belongs to."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, broker, group or metrics subscription by name; a broker with an empty name means all brokers."""

    type: int
    name: str


ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")


def topic_resource(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic)


def broker_resource(broker_id: BrokerId) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, str(broker_id))


# (entity type, name or None for the default), by type: (("client-id", None), ("user", "alice"))
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]


def quota_entity(names: Mapping[str, str | None]) -> QuotaEntity:
    return tuple(sorted(names.items(), key=lambda part: part[0]))


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: bytes  # 16 raw bytes, as in messages
    partitions: Mapping[int, PartitionRegistration]

    @property
    def topic_id(self) -> TopicId:
        return TopicId(UUID(bytes=self.id))

    def __str__(self) -> str:
        return f"{self.name} ({self.topic_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    cluster_id: str = ""

    # The last offset in the image, with the epoch and timestamp of its batch.
    offset: Offset = -1
    epoch: LeaderEpoch = -1
    timestamp_ms: int = -1

    features: Mapping[str, int] = field(default_factory=dict)
    brokers: Mapping[BrokerId, BrokerRegistration] = field(default_factory=dict)
    controllers: Mapping[int, ControllerRegistration] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[bytes, TopicImage] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    next_producer_id: int = -1  # first id of the next block to allocate; -1 before the first

    # Kept in the form of their records.
    acls: Mapping[bytes, messages.AccessControlEntryRecord] = field(default_factory=dict)
    acl_ids: Mapping[Acl, bytes] = field(default_factory=dict)  # the id in `acls` of each entry
    scram_credentials: Mapping[tuple[int, str], messages.UserScramCredentialRecord] = field(default_factory=dict)
    delegation_tokens: Mapping[str, messages.DelegationTokenRecord] = field(default_factory=dict)

    # Features

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, LATEST_METADATA_VERSION)

    @property
    def record_versions(self) -> RecordVersions:
        return record_versions(self.metadata_version)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    # Brokers

    def is_active(self, broker_id: BrokerId) -> bool:
        """Return True if a broker is registered, unfenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def unfenced_brokers(self) -> list[BrokerRegistration]:
        return [broker for broker in self.brokers.values() if not broker.fenced]

    def default_directory(self, broker_id: BrokerId) -> bytes:
        """Return the directory id to note for a new replica on a broker."""
        if not self.record_versions.has_directories:
            return MIGRATING_DIRECTORY
        broker = self.brokers.get(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    # Topics

    def partition(self, partition: TopicPartition) -> PartitionRegistration | None:
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        for topic in self.topics.values():
            for number, partition in topic.partitions.items():
                yield topic, number, partition

    # Configs

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """Return the configs that are set for a resource."""
        return self.configs.get(resource, {})

    def topic_config(self, topic: str) -> Mapping[str, str]:
        return self.config(topic_resource(topic))


EMPTY_IMAGE = MetadataImage()
