"""One directory that Tailrace and Apache Kafka use in turn: each continues with the state of the other, after a clean
stop or a crash.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.config_description import describe_config
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.image import ConfigResource, MetadataImage
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.json_form import base64_uuid_text
from tests.support.batches import batch
from tests.support.controller_twin import LocalNode, raw_request
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.metadata_snapshots import write_snapshot

pytestmark = pytest.mark.kafka

NOW_MS = int(time.time() * 1000)  # Kafka's clock is the real one


class Ours:
    """Our node with its logs, as in a broker."""

    def __init__(self, broker: KafkaBroker) -> None:
        files = DiskFiles()
        # So small that a snapshot makes the log before it unnecessary.
        config = BrokerConfig({**broker.properties, "metadata.max.retention.bytes": "1"})
        self.directory = LogDirectory(files, str(broker.data), new_id=lambda: uuid.uuid4().hex)
        self._config = config
        report = self.directory.load(lambda topic: config.topic_config(MetadataImage(), topic), NOW_MS)
        assert report.failed == {}
        self.node = LocalNode(
            files,
            config=config,
            new_id=lambda: uuid.uuid4().bytes,
            now_ms=NOW_MS,
            previous_epoch=report.previous_broker_epoch,
        )

    @property
    def image(self) -> MetadataImage:
        return self.node.image

    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        create = m.CreateTopicsRequest
        topic = create.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[create.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        answer = self.node.controller.create_topics(create(topics=[topic]), NOW_MS)
        assert answer.topics[0].error_code == 0, answer
        for number in range(partitions):
            topic_id = TopicId(uuid.UUID(bytes=answer.topics[0].topic_id))
            config = self._config.topic_config(self.image, name)
            self.directory.create(TopicPartition(name, number), config, NOW_MS, topic_id)

    def append(self, name: str, partition: int, *values: bytes) -> int:
        log = self.directory.logs[TopicPartition(name, partition)]
        registration = self.image.topics[name].partitions[partition]
        data = batch(*((b"key", value) for value in values), timestamp=NOW_MS)
        result = log.append_as_leader(data, leader_epoch=registration.leader_epoch, now_ms=NOW_MS)
        log.advance_high_watermark(log.log_end_offset)
        return result.first_offset

    def stop(self) -> None:
        self.directory.close(NOW_MS, broker_epoch=self.node.stop())

    def crash(self) -> None:
        self.node.log.abandon()
        self.directory.abandon()


def topics_of_kafka(broker: KafkaBroker, *names: str) -> dict[str, Any]:
    """Return topics with id, leaders and epochs, once Kafka's broker has learned them from its controller."""
    for _ in range(100):
        reported = _asked(broker)
        leaders = {leader for _, partitions in reported.values() for leader, _, _ in partitions.values()}
        if set(reported) == set(names) and leaders == {1}:
            break
        time.sleep(0.1)
    return reported


def _asked(broker: KafkaBroker) -> dict[str, Any]:
    answer: Any = raw_request(broker.port, m.MetadataRequest(topics=None), 12)
    return {
        topic.name: (
            base64_uuid_text(topic.topic_id),
            {one.partition_index: (one.leader_id, one.leader_epoch, one.isr_nodes) for one in topic.partitions},
        )
        for topic in answer.topics
        if not topic.is_internal
    }


def topics_of(image: MetadataImage) -> dict[str, Any]:
    return {
        topic.name: (
            str(topic.topic_id),
            {number: (one.leader, one.leader_epoch, list(one.isr)) for number, one in topic.partitions.items()},
        )
        for topic in image.topics.values()
        if not topic.name.startswith("__")
    }


def configs_of_kafka(broker: KafkaBroker, topic: str) -> dict[str, tuple[str | None, int]]:
    describe = m.DescribeConfigsRequest
    resource = describe.DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
    answer: Any = raw_request(broker.port, describe(resources=[resource]), 4)
    return {one.name: (one.value, one.config_source) for one in answer.results[0].configs}


def configs_of(ours: Ours, topic: str) -> dict[str, tuple[str | None, int]]:
    described = describe_config(ours.node.config, ours.image, ConfigResource(2, topic))
    return {one.name: (one.value, one.source) for one in described}


def epochs_later(reported: dict[str, Any], by: int) -> dict[str, Any]:
    """Return the same topics after `by` more leader elections of each partition."""
    return {
        name: (topic_id, {number: (leader, epoch + by, isr) for number, (leader, epoch, isr) in partitions.items()})
        for name, (topic_id, partitions) in reported.items()
    }


def test_tailrace_and_kafka_continue_with_each_others_metadata(
    kafka_broker: Callable[..., KafkaBroker], kafka: KafkaInstallation
) -> None:
    broker = kafka_broker()
    ours = Ours(broker)
    ours.create("orders", 2, {"retention.ms": "123456789", "cleanup.policy": "compact,delete"})
    ours.append("orders", 1, b"one", b"two")
    write_snapshot(ours.node.controller.log, NOW_MS)
    ours.create("plain", 1, {})
    assert ours.append("plain", 0, b"first") == 0
    cluster_id = ours.image.cluster_id
    configs = configs_of(ours, "orders")
    reported = topics_of(ours.image)
    ours.stop()
    assert_kafka_can_read(kafka, broker.data / "__cluster_metadata-0")

    # Kafka continues after our clean stop. Leaving took one leader epoch, coming back another.
    broker.start()
    assert topics_of_kafka(broker, "orders", "plain") == epochs_later(reported, 2)
    assert configs_of_kafka(broker, "orders") == configs
    assert broker.produce("orders", 1, batch((b"key", b"three"), timestamp=NOW_MS)) == 2
    create = m.CreateTopicsRequest
    made = [create.CreatableTopicConfig(name="segment.ms", value="60000")]
    topic = create.CreatableTopic(name="kafkas", num_partitions=3, replication_factor=1, configs=made)
    raw_request(broker.port, create(topics=[topic]), 7)
    delete = m.DeleteTopicsRequest
    gone = delete(topics=[delete.DeleteTopicState(name="plain")], timeout_ms=30_000)
    raw_request(broker.port, gone, 6)
    reported = topics_of_kafka(broker, "orders", "kafkas")
    configs = configs_of_kafka(broker, "kafkas")
    broker.stop()

    # We continue after Kafka's clean stop.
    ours = Ours(broker)
    assert set(reported) == {"orders", "kafkas"}
    assert topics_of(ours.image) == epochs_later(reported, 2)
    assert ours.image.cluster_id == cluster_id
    assert configs_of(ours, "kafkas") == configs
    assert ours.append("orders", 1, b"four") == 3
    reported = topics_of(ours.image)
    ours.crash()

    # Kafka continues after our crash: it waits until our session has expired, and elects unclean leaders where
    # necessary.
    broker._crashed = True
    broker.start()
    assert topics_of_kafka(broker, "orders", "kafkas") == epochs_later(reported, 2)
    assert broker.produce("orders", 1, batch((b"key", b"five"), timestamp=NOW_MS)) == 4
    reported = topics_of_kafka(broker, "orders", "kafkas")
    broker.crash()

    # We continue after Kafka's crash.
    ours = Ours(broker)
    assert topics_of(ours.image) == epochs_later(reported, 2)
    assert ours.append("orders", 1, b"six") == 5
    ours.crash()


def assert_kafka_can_read(kafka: KafkaInstallation, folder: Path) -> None:
    """Check that DumpLogSegments decodes our log and our snapshots, and finds the same records as we do."""
    assert (folder / "00000000000000000000.log").exists() is False, "the snapshot made it unnecessary"
    for file in [*folder.glob("*.log"), *folder.glob("*.checkpoint")]:
        text = kafka.dump(file, options=("--cluster-metadata-decoder", "--skip-record-metadata", "--deep-iteration"))
        payloads = [json.loads(found) for found in re.findall(r"payload: (\{.*\})$", text, re.MULTILINE)]
        expected = 0 if file.stat().st_size < 300 else 1
        assert len(payloads) >= expected, text
        assert not re.search("(?i)error|exception|could not|isvalid: false", text), text
