"""Apache Kafka and Tailrace take turns on one directory and one port, without a visible difference for clients."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.protocol.messages import DescribeConfigsRequest, MetadataRequest
from tests.support.confluent import consume, create_topic, produce
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

CONFIG = {"retention.ms": "86400000", "segment.bytes": "1048576", "compression.type": "lz4"}


def two_free_ports() -> int:
    """Return the first of two free ports: the controller's port follows the broker's."""
    while True:
        port = free_port()
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port + 1))
            return port


class Place:
    """A directory and a port, which either broker may serve."""

    def __init__(self, directory: Path, kafka_broker: Callable[..., KafkaBroker]) -> None:
        port = two_free_ports()
        self.bootstrap = f"127.0.0.1:{port}"
        self.ours = TailraceProcess(directory / "data", port=port)
        addresses = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{port + 1}",
        }
        self.kafkas = kafka_broker(directory, port=port, properties=addresses)

    def facts(self) -> dict[str, Any]:
        """Return all that a client can learn about the cluster, its topics and their configs."""
        with RawClient(self.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=None), 12)
            resources = [
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=2, resource_name=topic.name, configuration_keys=list(CONFIG)
                )
                for topic in answer.topics
            ]
            described = client.ask(DescribeConfigsRequest(resources=resources), 4)
        configs = {
            result.resource_name: {config.name: config.value for config in result.configs}
            for result in described.results
        }
        return {
            "cluster": answer.cluster_id,
            "nodes": [(node.node_id, node.port) for node in answer.brokers],
            "topics": {
                topic.name: (topic.topic_id.hex(), len(topic.partitions), configs[topic.name])
                for topic in answer.topics
            },
        }

    def epochs(self, topic: str) -> list[int]:
        with RawClient(self.bootstrap) as client:
            asked = [MetadataRequest.MetadataRequestTopic(name=topic)]
            (found,) = client.ask(MetadataRequest(topics=asked), 12).topics
        return [partition.leader_epoch for partition in found.partitions]

    def append(self, topic: str, marker: str, count: int = 40) -> list[bytes]:
        values = [f"{marker} {number}".encode() for number in range(count)]
        produce(self.bootstrap, topic, 0, values)
        return values


@pytest.fixture
def place(tmp_path: Path, kafka_broker: Callable[..., KafkaBroker]) -> Any:
    place = Place(tmp_path / "node", kafka_broker)
    yield place
    if place.ours.process is not None:
        place.ours.kill()


def check(place: Place, topic: str, written: list[bytes]) -> None:
    got = consume(place.bootstrap, topic, 0)
    assert [record.offset for record in got] == list(range(len(written)))
    assert [record.value for record in got] == written


def test_kafka_serves_a_directory_of_tailrace_and_tailrace_continues(place: Place) -> None:
    place.ours.start()
    create_topic(place.bootstrap, "ours", 2, CONFIG)
    create_topic(place.bootstrap, "empty")
    written = place.append("ours", "ours")
    before = place.facts()
    epochs = place.epochs("ours")
    assert before["topics"]["ours"][1:] == (2, CONFIG)
    assert place.ours.stop() == 0

    place.kafkas.start()
    assert place.facts() == before
    check(place, "ours", written)
    assert all(new >= old for new, old in zip(place.epochs("ours"), epochs, strict=True))
    written += place.append("ours", "kafka's")
    create_topic(place.bootstrap, "theirs", 1, CONFIG)
    theirs = place.append("theirs", "kafka's")
    before = place.facts()
    epochs = place.epochs("ours")
    place.kafkas.stop()

    place.ours.start()
    assert place.facts() == before
    check(place, "ours", written)
    check(place, "theirs", theirs)
    assert all(new >= old for new, old in zip(place.epochs("ours"), epochs, strict=True))
    written += place.append("ours", "ours again")
    check(place, "ours", written)
    assert place.ours.stop() == 0
    assert place.ours.errors == ""


def test_tailrace_serves_a_directory_of_kafka_after_unclean_stops(place: Place) -> None:
    place.kafkas.start()
    create_topic(place.bootstrap, "theirs", 1, CONFIG)
    written = place.append("theirs", "kafka's")
    before = place.facts()
    place.kafkas.crash()

    place.ours.start()
    assert place.facts() == before
    check(place, "theirs", written)
    written += place.append("theirs", "ours")
    create_topic(place.bootstrap, "ours", 3)
    before = place.facts()
    place.ours.kill()

    place.kafkas.start()
    assert place.facts() == before
    check(place, "theirs", written)
    written += place.append("theirs", "kafka's again")
    check(place, "theirs", written)
