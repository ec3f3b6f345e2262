"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources through the broker."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.config.setting_sentences import sentence_of
from tailrace.metadata.image.effective_config import ConfigSource
from tailrace.metadata.image.image import ResourceType
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.support.memory_node import Client, start

SET, DELETE = 0, 1


@pytest.fixture
def client() -> Client:
    client = Client(start())
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    return client


def describe(client: Client, kind: int, name: str, keys: list[str] | None = None, version: int = 4) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=version >= 1)
    return client.ask(request, version).results[0]


def test_documentation_is_a_sentence_of_our_own_and_only_on_request(client: Client) -> None:
    for wanted in (False, True):
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name="orders", configuration_keys=["retention.ms"]
        )
        request = DescribeConfigsRequest(resources=[resource], include_documentation=wanted)
        found = client.ask(request, 4).results[0].configs[0].documentation
        assert found == (sentence_of(ResourceType.TOPIC, "retention.ms") if wanted else None)


def change(client: Client, kind: int, name: str, key: str, operation: int, value: str | None = None) -> Any:
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
                ],
            )
        ]
    )
    return client.ask(request, 1).responses[0]


@pytest.mark.parametrize("version", range(5))
def test_every_version_describes_the_configs_of_a_topic(client: Client, version: int) -> None:
    assert change(client, ResourceType.TOPIC, "orders", "retention.ms", SET, "5000").error_code == 0
    answer = describe(client, ResourceType.TOPIC, "orders", ["retention.ms", "segment.bytes"], version)
    found = {one.name: one for one in answer.configs}
    assert (found["retention.ms"].value, found["segment.bytes"].value) == ("5000", "1073741824")
    if version == 0:
        assert (found["retention.ms"].is_default, found["segment.bytes"].is_default) == (False, True)
    else:
        assert found["retention.ms"].config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG
        assert found["retention.ms"].synonyms[0].source == ConfigSource.DYNAMIC_TOPIC_CONFIG


def test_a_topic_config_change_and_its_deletion_reach_the_log(client: Client) -> None:
    (directory,) = client.broker.services.logs.directories
    (log,) = directory.logs.values()
    change(client, ResourceType.TOPIC, "orders", "retention.ms", SET, "5000")
    assert log.config.retention_ms == 5000
    change(client, ResourceType.TOPIC, "orders", "retention.ms", DELETE)
    assert log.config.retention_ms == 604_800_000


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_resets_settings_that_it_does_not_name(client: Client, version: int) -> None:
    change(client, ResourceType.TOPIC, "orders", "retention.ms", SET, "5000")
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        configs=[AlterConfigsRequest.AlterableConfig(name="max.message.bytes", value="9000")],
    )
    assert client.ask(AlterConfigsRequest(resources=[resource]), version).responses[0].error_code == 0
    assert client.broker.services.controller.image.topic_config("orders") == {"max.message.bytes": "9000"}


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (ResourceType.TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.BROKER, "2", ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_describing_an_unknown_resource_is_refused(client: Client, kind: int, name: str, error: ErrorCode) -> None:
    answer = describe(client, kind, name)
    assert (answer.error_code, answer.configs) == (error, [])


def test_a_change_of_listeners_at_run_time_is_refused(client: Client) -> None:
    answer = change(client, ResourceType.BROKER, "1", "listeners", SET, "PLAINTEXT://:1")
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_thread_count_can_be_at_most_halved_or_doubled(client: Client) -> None:
    def to(value: str, name: str = "1") -> ErrorCode:
        return ErrorCode(change(client, ResourceType.BROKER, name, "num.replica.fetchers", SET, value).error_code)

    assert to("3") is ErrorCode.INVALID_REQUEST
    assert to("0") is ErrorCode.INVALID_REQUEST
    assert [to("2"), to("4"), to("8")] == [ErrorCode.NONE] * 3
    assert to("3") is ErrorCode.INVALID_REQUEST
    assert to("17", "") is ErrorCode.NONE  # for all brokers: what this one has of its own counts
    assert change(client, ResourceType.BROKER, "1", "num.replica.fetchers", DELETE).error_code == (
        ErrorCode.INVALID_REQUEST  # it would have 17
    )


def test_list_config_resources_returns_resources_by_type(client: Client) -> None:
    change(client, ResourceType.CLIENT_METRICS, "sub", "interval.ms", SET, "1000")

    def listed(version: int, *kinds: int) -> set[tuple[int, str]]:
        answer = client.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
        assert answer.error_code == 0
        return {(one.resource_type, one.resource_name) for one in answer.config_resources}

    assert listed(0) == {(ResourceType.CLIENT_METRICS, "sub")}
    assert listed(1, ResourceType.TOPIC) == {(ResourceType.TOPIC, "orders")}
    assert listed(1) == {(2, "orders"), (4, "1"), (8, "1"), (16, "sub")}
    assert client.ask(ListConfigResourcesRequest(resource_types=[64]), 1).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_dynamic_only_config_is_described_only_where_it_is_set(client: Client) -> None:
    name = "leader.replication.throttled.rate"

    def reported() -> list[tuple[str, int]]:
        configs = [one for one in describe(client, ResourceType.BROKER, "1").configs if one.name == name]
        return [(one.value, one.source) for config in configs for one in config.synonyms]

    assert reported() == []
    change(client, ResourceType.BROKER, "1", name, SET, "77")
    assert reported() == [("77", ConfigSource.DYNAMIC_BROKER_CONFIG)]
