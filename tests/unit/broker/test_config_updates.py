"""Changed settings reach the logs of all partitions that they concern, with pauses and without a look at the others."""

from __future__ import annotations

from typing import Any

from tailrace.broker.storage.config_updates import AT_ONCE
from tailrace.metadata.image.image import ResourceType
from tailrace.protocol import messages as m
from tailrace.protocol.headers import RequestHeader, write_request_header
from tests.support.stretches import Stretches

PARTITIONS = 4 * AT_ONCE
LINES_OF_ONE_TOPIC = 3_000  # the work of altering one topic with one partition, with a margin


def _send(broker: Stretches, request: Any, version: int) -> None:
    header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "test"))
    broker.send(header + request.encode(version))


def _create(broker: Stretches, name: str, partitions: int) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    _send(broker, m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7)


def _alter(broker: Stretches, resource_type: ResourceType, name: str, key: str, value: str) -> None:
    request = m.IncrementalAlterConfigsRequest()
    config = request.AlterableConfig(name=key, config_operation=0, value=value)
    request.resources = [
        request.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[config])
    ]
    _send(broker, request, 1)


def _retention_ms(broker: Stretches, topic: str) -> set[int]:
    partitions = broker.broker.services.partitions
    return {partition.log.config.retention_ms for partition in partitions if partition.key.topic == topic}


def test_altering_a_topic_costs_nothing_for_the_partitions_of_other_topics() -> None:
    broker = Stretches()
    _create(broker, "wide", PARTITIONS)
    _create(broker, "narrow", 1)
    _alter(broker, ResourceType.TOPIC, "narrow", "retention.ms", "1000")
    _alter(broker, ResourceType.TOPIC, "narrow", "retention.ms", "2000")
    assert broker.longest < LINES_OF_ONE_TOPIC
    assert _retention_ms(broker, "narrow") == {2000}
    assert _retention_ms(broker, "wide") == {604_800_000}


def test_a_new_default_reaches_the_logs_of_all_topics_with_pauses() -> None:
    broker = Stretches()
    _create(broker, "wide", PARTITIONS)
    _alter(broker, ResourceType.BROKER, "", "log.retention.ms", "1000")
    assert len(_retention_ms(broker, "wide")) == 2, "some logs are updated after the response"
    while broker.broker.services.config_updates.next_deadline_ms() == 0:
        broker.tick()
    assert _retention_ms(broker, "wide") == {1000}


def test_an_update_that_another_change_overtakes_leaves_the_last_settings() -> None:
    broker = Stretches()
    _create(broker, "wide", PARTITIONS)
    _alter(broker, ResourceType.TOPIC, "wide", "retention.ms", "1000")
    _alter(broker, ResourceType.TOPIC, "wide", "retention.ms", "2000")
    while broker.broker.services.config_updates.next_deadline_ms() == 0:
        broker.tick()
    assert _retention_ms(broker, "wide") == {2000}
