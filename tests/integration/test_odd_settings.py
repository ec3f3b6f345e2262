"""No setting that a client can change prevents the broker from starting again, or a topic or group from working."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tailrace.metadata.image.image import ResourceType
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ProduceRequest,
)
from tests.support.batches import batch
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess
from tests.unit.metadata.test_topic_settings import ONCE_FATAL

SETTINGS = [(key, text) for key, text, _ in ONCE_FATAL]


def create(client: RawClient, topic: str, settings: dict[str, str]) -> int:
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=name, value=text) for name, text in settings.items()]
    made = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
    return int(client.ask(CreateTopicsRequest(topics=[made], timeout_ms=30_000), 5).topics[0].error_code)


def alter(client: RawClient, kind: ResourceType, name: str, key: str, text: str) -> int:
    change = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=text)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[change]
    )
    return int(client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code)


def produce(client: RawClient, topic: str) -> int:
    records = batch((b"key", b"value"), timestamp=int(time.time() * 1000))
    partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(records))
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    response = client.ask(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]), 8)
    return int(response.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("is_altered", [False, True])
def test_topics_with_odd_settings_are_served_before_and_after_a_restart(tmp_path: Path, is_altered: bool) -> None:
    topics = [f"odd-{number}" for number in range(len(SETTINGS))]
    expected = [ErrorCode.RECORD_LIST_TOO_LARGE if key == "internal.segment.bytes" else 0 for key, _ in SETTINGS]
    with TailraceProcess(tmp_path / "data") as broker:
        with RawClient(broker.bootstrap) as client:
            for topic, (key, text) in zip(topics, SETTINGS, strict=True):
                assert create(client, topic, {} if is_altered else {key: text}) == ErrorCode.NONE
                if is_altered:
                    assert alter(client, ResourceType.TOPIC, topic, key, text) == ErrorCode.NONE
            assert [produce(client, topic) for topic in topics] == expected
        broker.kill()
        broker.start()
        with RawClient(broker.bootstrap) as client:
            assert [produce(client, topic) for topic in topics] == expected


def test_a_broker_setting_that_contradicts_a_topic_setting_does_not_prevent_a_restart(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker:
        with RawClient(broker.bootstrap) as client:
            assert create(client, "lagging", {"min.compaction.lag.ms": "100000"}) == ErrorCode.NONE
            error = alter(client, ResourceType.BROKER, "", "log.cleaner.max.compaction.lag.ms", "10\0")
            assert error == ErrorCode.NONE
            assert produce(client, "lagging") == ErrorCode.NONE
        assert broker.stop() == 0
        broker.start()
        with RawClient(broker.bootstrap) as client:
            assert produce(client, "lagging") == ErrorCode.NONE


def test_a_group_with_odd_settings_can_be_joined(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker, RawClient(broker.bootstrap) as client:
        assert alter(client, ResourceType.GROUP, "odd", "consumer.session.timeout.ms", "50000\0") == ErrorCode.NONE
        assert client.ask(FindCoordinatorRequest(key="odd", key_type=0), 3).error_code == ErrorCode.NONE
        request = ConsumerGroupHeartbeatRequest(
            group_id="odd",
            member_id="member",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        assert client.ask(request, 1).error_code == ErrorCode.NONE
