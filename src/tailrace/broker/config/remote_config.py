"""RemoteConfig: the settings of tiered storage in server.properties.

    remote.log.storage.system.enable=true
    remote.log.storage.manager.class.name=org.apache.kafka.server.log.remote.storage.LocalTieredStorage
    rsm.config.dir=/mnt/shared

The store gets the settings with the prefix `rsm.config.`, and the topic of the metadata those with `rlmm.config.`. Both
prefixes can be changed, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from tailrace.broker.config.role_config import Roles
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.configs.config_definitions import java_integer
from tailrace.model.topic_config import LONG_MAX, InvalidConfig

ENABLE: Final = "remote.log.storage.system.enable"
STORE_CLASS: Final = "remote.log.storage.manager.class.name"
_METADATA_CLASS: Final = "remote.log.metadata.manager.class.name"
_STORE_PREFIX: Final = "remote.log.storage.manager.impl.prefix"
_METADATA_PREFIX: Final = "remote.log.metadata.manager.impl.prefix"

# The settings of the metadata topic: default, least and largest value. The others with the prefix configure Kafka's own
# clients, which Tailrace does not need.
_METADATA_SETTINGS: Final = {
    "remote.log.metadata.topic.num.partitions": (50, 1, 2**31 - 1),
    "remote.log.metadata.topic.replication.factor": (3, 1, 2**15 - 1),
    "remote.log.metadata.topic.retention.ms": (-1, -1, LONG_MAX),
    "remote.log.metadata.topic.min.isr": (2, 1, 2**31 - 1),
}


class Settings(Protocol):
    """The settings of server.properties, as BrokerConfig has them."""

    static: dict[str, str]
    roles: Roles

    def integer(self, name: str) -> int: ...
    def number(self, name: str) -> float: ...
    def flag(self, name: str) -> bool: ...
    def text(self, name: str) -> str | None: ...


class RemoteConfig:
    def __init__(self, config: Settings) -> None:
        """Raise InvalidConfig for settings that tiered storage cannot work with."""
        self.task_interval_ms = config.integer("remote.log.manager.task.interval.ms")
        prefix = "remote.log.manager.task.retry"
        self.retry = (  # of failed tasks: the first wait, the longest one, and the part of it that is random
            config.integer(f"{prefix}.backoff.ms"),
            config.integer(f"{prefix}.backoff.max.ms"),
            config.number(f"{prefix}.jitter"),
        )
        self.custom_metadata_bytes_max = config.integer("remote.log.metadata.custom.metadata.max.bytes")
        self.index_ttl_ms = config.integer("remote.log.index.file.cache.ttl.ms")
        self.reads_waiting_max = config.integer("remote.log.reader.max.pending.tasks")
        self.store_settings = _with_prefix(config.static, config.text(_STORE_PREFIX) or "")
        given = _with_prefix(config.static, config.text(_METADATA_PREFIX) or "")
        numbers = {name: _number(given, name) for name in _METADATA_SETTINGS}
        self.metadata_partitions, self.metadata_replicas, self.metadata_retention_ms, self.metadata_min_isr = (
            numbers.values()
        )
        self.store_class = _checked(config)


def is_enabled(config: Settings) -> bool:
    return config.flag(ENABLE)


def check_no_tiered_topics(image: MetadataImage) -> None:
    """Raise InvalidConfig if a topic has records in a remote store. Without tiered storage they could not be read."""
    for name in image.topics:
        if is_tiered_topic(image, name):
            raise InvalidConfig(
                "You have to delete all topics with the property remote.storage.enable=true before disabling tiered "
                f"storage cluster-wide: {name} has it"
            )


def is_tiered_topic(image: MetadataImage, name: str) -> bool:
    return image.topic_config(name).get("remote.storage.enable", "").lower() == "true"


def prefixes(config: Settings) -> tuple[str, str]:
    """Return the prefixes of the settings that the store and the metadata topic read."""
    return config.text(_STORE_PREFIX) or "", config.text(_METADATA_PREFIX) or ""


def _checked(config: Settings) -> str:
    """Return the class name of the store."""
    if config.roles.is_broker_only:
        raise InvalidConfig(
            f"{ENABLE}: tiered storage needs a node that is its own controller (process.roles=broker,controller); "
            "brokers with separate controllers do not support it yet"
        )
    if config.roles.serves_brokers:
        raise InvalidConfig(
            f"{ENABLE}: a node with tiered storage cannot be the controller of other brokers yet, because they could "
            "lead partitions of __remote_log_metadata: remove the controller listener from listeners"
        )
    default = "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
    if config.text(_METADATA_CLASS) != default:
        raise InvalidConfig(f"{_METADATA_CLASS} is not supported: remove it; the metadata is in __remote_log_metadata")
    name = config.text(STORE_CLASS)
    if not name:
        raise InvalidConfig(f"{STORE_CLASS} must be set if {ENABLE} is true: it names the remote store")
    return name


def _with_prefix(static: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: text for name, text in static.items() if name.startswith(prefix)}


def _number(given: Mapping[str, str], name: str) -> int:
    default, least, largest = _METADATA_SETTINGS[name]
    text = given.get(name)
    if text is None:
        return default
    number = java_integer(text)
    if number is None:
        raise InvalidConfig(f"{name} is {text!r}, not a whole number")
    if not least <= number <= largest:
        raise InvalidConfig(f"{name} is {number}; it must be {least} to {largest}")
    return number
