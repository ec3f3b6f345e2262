"""Configs of topics and brokers: effective values with their sources, and changes of single keys.

A broker's own configs are queried from and changed on that broker. The defaults of all brokers have an empty name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import Refused, UnknownTopic
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4


class ConfigSource(IntEnum):
    """The source of a config value. The first source with a value, in this order, is effective."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Resource(NamedTuple):
    """A topic, a broker (its id as name), or the defaults of all brokers (an empty name)."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> Resource:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int | None) -> Resource:
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))

    @property
    def node_id(self) -> int | None:
        """The broker that must handle the request; None: any broker."""
        return int(self.name) if self.type is ResourceType.BROKER and self.name else None

    def __str__(self) -> str:
        if self.type is ResourceType.TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "defaults of all brokers"


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None if sensitive
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType = ConfigType.UNKNOWN
    synonyms: tuple[tuple[str, str | None, ConfigSource], ...] = ()  # values of lower precedence: name, value, source
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2  # to a list
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    name: str
    operation: Operation
    value: str | None = None


FIRST_WITH_SOURCES: Final = 1
_FIRST_WITH_DOCUMENTATION: Final = 3  # Kafka 2.6


def describe_configs(
    cluster: ClusterClient, resource: Resource, keys: Iterable[str] | None = None, *, with_documentation: bool = False
) -> list[ConfigEntry]:
    """Return a resource's configs sorted by name: these keys, or all."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configuration_keys=None if keys is None else list(keys),
            )
        ],
        include_synonyms=True,
        include_documentation=with_documentation,
    )
    version_min = _FIRST_WITH_DOCUMENTATION if with_documentation else FIRST_WITH_SOURCES

    def check(answer: DescribeConfigsResponse) -> None:
        for result in answer.results:
            _raise(resource, result.error_code, result.error_message)

    if resource.node_id is None:
        answer = cluster.ask_any(request, version_min=version_min, check=check)
    else:
        answer = cluster.ask_node(resource.node_id, request, version_min=version_min, check=check)
    return sorted(_entry(config) for result in answer.results for config in result.configs)


def topic_config_values(cluster: ClusterClient, topics: Iterable[str], key: str) -> dict[str, str]:
    """Return the value of one config for several topics. Deleted topics are omitted."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=[key]
            )
            for name in topics
        ]
    )
    if not request.resources:
        return {}

    def check(answer: DescribeConfigsResponse) -> None:
        for result in answer.results:
            if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                _raise(Resource.topic(result.resource_name), result.error_code, result.error_message)

    answer: DescribeConfigsResponse = cluster.ask_any(request, version_min=FIRST_WITH_SOURCES, check=check)
    found = {result.resource_name: config.value for result in answer.results for config in result.configs}
    return {name: value for name, value in found.items() if value is not None}


def _entry(config: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        None if config.is_sensitive else config.value,
        _source(config.config_source),
        config.read_only,
        config.is_sensitive,
        ConfigType(config.config_type) if config.config_type in set(ConfigType) else ConfigType.UNKNOWN,
        tuple((one.name, one.value, _source(one.source)) for one in config.synonyms),
        config.documentation,
    )


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in set(ConfigSource) else ConfigSource.UNKNOWN


def alter_configs(
    cluster: ClusterClient, resource: Resource, changes: Iterable[ConfigChange], *, validate_only: bool = False
) -> None:
    """Change these keys, all of them or none, and leave the other keys unchanged."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                    for change in changes
                ],
            )
        ],
        validate_only=validate_only,
    )

    def check(answer: IncrementalAlterConfigsResponse) -> None:
        for result in answer.responses:
            _raise(resource, result.error_code, result.error_message)

    cluster.change(request, check, node_id=resource.node_id)


def _raise(resource: Resource, code: int, message: str | None) -> None:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and resource.type is ResourceType.TOPIC:
        raise UnknownTopic(resource.name)
    if code:
        raise Refused(str(resource), code, message)
