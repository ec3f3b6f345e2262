"""The effective value of a topic's config, and its source.

The topic's own setting has the highest precedence. Then come the corresponding keys of the broker: set for this broker,
set for all brokers, from server.properties, and the default. DescribeConfigs returns the same list as `synonyms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from tailrace.metadata.image.image import ALL_BROKERS, MetadataImage, ResourceType, broker_resource
from tailrace.model.configs.config_definitions import ConfigDefinition, ConfigKey, definition, topic_synonyms
from tailrace.model.ids import BrokerId


class ConfigSource(IntEnum):
    """The source of a value, with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigEntry(NamedTuple):
    key: ConfigKey
    value: str | None
    source: ConfigSource


class EffectiveConfigs:
    """Effective configs, from a broker's properties file and the metadata image."""

    def __init__(self, static: Mapping[str, str], node_id: BrokerId) -> None:
        self.static = static
        self.node_id = node_id

    def broker_layers(self, image: MetadataImage) -> Iterator[tuple[ConfigSource, Mapping[str, str]]]:
        """Yield the configs of the broker, highest precedence first."""
        yield ConfigSource.DYNAMIC_BROKER_CONFIG, image.config(broker_resource(self.node_id))
        yield ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, image.config(ALL_BROKERS)
        yield ConfigSource.STATIC_BROKER_CONFIG, self.static

    def topic_entry(self, image: MetadataImage, overrides: Mapping[str, str], name: str) -> ConfigEntry:
        key = definition("topic")[name]
        if name in overrides:
            return ConfigEntry(key, overrides[name], ConfigSource.DYNAMIC_TOPIC_CONFIG)
        for source, settings in self.broker_layers(image):
            for synonym, factor in topic_synonyms().get(name, ()):
                if synonym in settings:
                    return ConfigEntry(key, _times(synonym, settings[synonym], factor), source)
        return ConfigEntry(key, key.default, ConfigSource.DEFAULT_CONFIG)

    def topic_entries(self, image: MetadataImage, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Return all keys that users can see, sorted by name."""
        return [
            self.topic_entry(image, overrides, name)
            for name, key in sorted(definition("topic").items())
            if not key.internal or name in overrides
        ]

    def topic_settings(self, image: MetadataImage, overrides: Mapping[str, str]) -> dict[str, str]:
        """Return the effective values that differ from the defaults."""
        entries = self.topic_entries(image, overrides)
        return {
            entry.key.name: entry.value
            for entry in entries
            if entry.value is not None and entry.source != ConfigSource.DEFAULT_CONFIG
        }

    # What the controller needs for decisions

    def min_insync_replicas(self, image: MetadataImage, topic: str) -> int:
        """Return min.insync.replicas of a topic, limited to its replication factor."""
        replicas = len(image.topics[topic].partitions[0].replicas)
        entry = self.topic_entry(image, image.topic_config(topic), "min.insync.replicas")
        least = entry.key.parse_or_default(entry.value)
        assert isinstance(least, int)
        return min(least, replicas)

    def allows_unclean_election(self, image: MetadataImage, topic: str) -> bool:
        entry = self.topic_entry(image, image.topic_config(topic), "unclean.leader.election.enable")
        return entry.key.parse_or_default(entry.value) is True


def _times(name: str, text: str, factor: int) -> str:
    """Convert hours or minutes to milliseconds; a negative value means unlimited in any unit."""
    if factor == 1:
        return text
    value = definition("broker")[name].parse_or_default(text)
    if not isinstance(value, int):
        return text
    return str(value * factor if value >= 0 else value)


_SECTIONS: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.GROUP: "group",
    ResourceType.CLIENT_METRICS: "client_metrics",
}


def definition_for(resource_type: int) -> ConfigDefinition | None:
    """Return the keys of a resource type, or None if it has no configs."""
    section: Any = _SECTIONS.get(ResourceType(resource_type)) if resource_type in list(ResourceType) else None
    return definition(section) if section else None
