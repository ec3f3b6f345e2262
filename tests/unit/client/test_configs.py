from __future__ import annotations

from typing import Any

import pytest

from tailrace.client.configs import ConfigSource, ConfigType, Resource, describe_configs
from tailrace.client.errors import Refused, UnknownTopic
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import (
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support.config_changes import set_configs, unset_configs
from tests.unit.client.fakes import FakeCluster


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    fake.controller = 2
    return fake


def answer_with(fake: FakeCluster, code: int = 0, **config: Any) -> None:
    configs = [DescribeConfigsResponse.DescribeConfigsResourceResult(**config)] if config else []
    result = DescribeConfigsResponse.DescribeConfigsResult(error_code=code, configs=configs)
    fake.handle(ApiKey.DESCRIBE_CONFIGS, lambda request, version: DescribeConfigsResponse(results=[result]))
    altered = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(error_code=code, error_message="no")
    fake.handle(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        lambda request, version: IncrementalAlterConfigsResponse(responses=[altered]),
    )


def test_a_brokers_own_configs_are_requested_from_that_broker(fake: FakeCluster) -> None:
    answer_with(fake)
    client = fake.client()
    for resource in (Resource.broker(1), Resource.broker(None), Resource.topic("t")):
        describe_configs(client, resource)
        set_configs(client, resource, {"k": "v"})
    where = [(one.node_id, one.api_key) for one in fake.asked if one.api_key == ApiKey.INCREMENTAL_ALTER_CONFIGS]
    assert [node_id for node_id, _ in where] == [1, 2, 2]
    assert fake.asked[0].node_id == 1


def test_a_config_change_contains_only_the_changed_keys(fake: FakeCluster) -> None:
    answer_with(fake)
    client = fake.client()
    set_configs(client, Resource.topic("t"), {"a": "1", "b": ""})
    unset_configs(client, Resource.topic("t"), ["c"])
    changes: list[IncrementalAlterConfigsRequest] = [one.message for one in fake.asked]
    assert [[(c.name, c.config_operation, c.value) for c in change.resources[0].configs] for change in changes] == [
        [("a", 0, "1"), ("b", 0, "")],
        [("c", 1, None)],
    ]


def test_sensitive_values_are_none_and_unknown_sources_are_unknown(fake: FakeCluster) -> None:
    answer_with(fake, name="k", value="secret", is_sensitive=True, config_source=99, config_type=99)
    (entry,) = describe_configs(fake.client(), Resource.topic("t"))
    assert (entry.value, entry.source, entry.type) == (None, ConfigSource.UNKNOWN, ConfigType.UNKNOWN)


def test_config_errors_are_raised_as_refused_or_unknown_topic(fake: FakeCluster) -> None:
    answer_with(fake, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(UnknownTopic):
        describe_configs(fake.client(), Resource.topic("t"))
    answer_with(fake, ErrorCode.INVALID_CONFIG)
    with pytest.raises(Refused, match=r"defaults of all brokers: no \(INVALID_CONFIG\)"):
        set_configs(fake.client(), Resource.broker(None), {"a": "b"})
