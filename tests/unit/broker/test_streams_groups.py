"""Streams groups at a whole broker: topics that it makes, what configuration and features allow."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.metadata.image.image import topic_resource
from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    StreamsGroupDescribeRequest,
    UpdateFeaturesRequest,
)
from tests.support.memory_node import Client, start
from tests.support.streams_member import StreamsMember, word_count

GROUP = 32  # as a resource of configurations
SETTINGS = {"offsets.topic.num.partitions": "1", "group.streams.initial.rebalance.delay.ms": "0"}


def opened(**settings: str) -> Client:
    client = Client(start(static={**SETTINGS, **{key.replace("__", "."): value for key, value in settings.items()}}))
    topic = CreateTopicsRequest.CreatableTopic(name="lines", num_partitions=3, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[topic]), 7)
    client.ask(FindCoordinatorRequest(key="app"), 3)
    return client


def member(name: str = "m") -> StreamsMember:
    return StreamsMember("app", name, word_count("app", "lines"))


def test_internal_topics_of_a_streams_application_are_created_with_its_configs() -> None:
    client, thread = opened(), member()
    answer = thread.beat(client)
    assert [(one.status_code, one.status_detail) for one in answer.status] == [
        (3, "Internal topics are missing: app-counts-changelog, app-words-repartition")
    ]
    topics = client.broker.services.controller.image.topics
    assert {name: len(topics[name].partitions) for name in topics if name.startswith("app")} == {
        "app-words-repartition": 3,
        "app-counts-changelog": 3,
    }
    settings = client.broker.services.controller.image.config(topic_resource("app-counts-changelog"))
    assert settings["cleanup.policy"] == "compact"
    client.now_ms += 1_000
    assert thread.beat(client).status == []
    assert thread.tasks == {"0": [0, 1, 2], "1": [0, 1, 2]}


def test_a_streams_heartbeat_reports_topics_that_cannot_be_created() -> None:
    client = opened()
    subtopologies = word_count("app", "lines")
    subtopologies[1].state_changelog_topics[0].replication_factor = 3
    answer = StreamsMember("app", "m", subtopologies).beat(client)
    assert "; Creation failed: app-counts-changelog (" in answer.status[0].status_detail


def ask_all(client: Client) -> set[int]:
    """Return the errors of all requests of streams groups."""
    described = client.ask(StreamsGroupDescribeRequest(group_ids=["app"]), 0).groups[0].error_code
    request: Any = None

    class Asked:
        @staticmethod
        def ask(beat: Any, version: int) -> Any:
            nonlocal request
            request = beat
            raise LookupError

    with pytest.raises(LookupError):
        member().beat(Asked())  # type: ignore[arg-type]
    return {described, client.ask(request, 0).error_code}


def test_groups_of_a_protocol_that_is_not_enabled_are_refused() -> None:
    client = opened(group__coordinator__rebalance__protocols="classic")
    assert ask_all(client) == {ErrorCode.UNSUPPORTED_VERSION}
    joining = ConsumerGroupHeartbeatRequest(group_id="app", member_id="m", rebalance_timeout_ms=1, topic_partitions=[])
    assert client.ask(joining, 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    described = client.ask(ConsumerGroupDescribeRequest(group_ids=["app"]), 1).groups[0]
    assert described.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_streams_groups_need_the_finalized_streams_version() -> None:
    client = opened()
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
    assert client.ask(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == ErrorCode.NONE
    assert ask_all(client) == {ErrorCode.UNSUPPORTED_VERSION}


@pytest.mark.parametrize(
    "settings",
    [
        {"group.streams.session.timeout.ms": "70000"},
        {"group.streams.session.timeout.ms": "1000"},
        {"group.streams.heartbeat.interval.ms": "1000"},
        {"group.streams.min.heartbeat.interval.ms": "20000"},
        {"group.streams.assignment.interval.ms": "20000"},
        {"group.streams.num.standby.replicas": "3"},
        {"group.consumer.session.timeout.ms": "1000"},
        {"group.coordinator.rebalance.protocols": "consumer,streams"},
    ],
)
def test_contradicting_streams_group_settings_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        start(static=settings)


def test_a_streams_group_can_have_its_own_configs() -> None:
    client, thread = opened(), member()
    changes = {"streams.heartbeat.interval.ms": "7000", "streams.num.standby.replicas": "1"}
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP,
        resource_name="app",
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=key, value=text) for key, text in changes.items()],
    )
    assert client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
    assert thread.beat(client).heartbeat_interval_ms == 7_000
    other = member("n")
    for _ in range(6):
        client.now_ms += 1_000
        thread.beat(client)
        answer = other.beat(client)
    (described,) = client.ask(StreamsGroupDescribeRequest(group_ids=["app"]), 0).groups
    copies = [task for one in described.members for task in one.target_assignment.standby_tasks]
    assert sum(len(task.partitions) for task in copies) == 3
    assert answer.error_code == ErrorCode.NONE
