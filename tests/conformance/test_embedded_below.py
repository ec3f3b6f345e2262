"""tailrace.Broker in a cluster of Apache Kafka: its API works as for a standalone broker."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

import tailrace
from tailrace.model.errors import ErrorCode, KafkaError
from tests.support.confluent import consume, produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.replicated_cluster import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_the_embedded_api_works_in_a_cluster(kafka: KafkaInstallation, tmp_path: Path) -> None:
    quick = {"broker.session.timeout.ms": "3000"}
    with (
        KafkaControllers(kafka, tmp_path, properties=quick, is_formatted_here=True) as controllers,
        tailrace.Broker(
            config={
                "process.roles": "broker",
                "controller.quorum.bootstrap.servers": controllers.bootstrap,
                "controller.listener.names": "CONTROLLER",
                "tailrace.metrics.port": 0,
            }
        ) as broker,
    ):
        broker.create_topic("orders", partitions=2, config={"retention.ms": 5})
        core = broker._running_core()
        assert len(core.services.controller.image.topics["orders"].partitions) == 2
        assert core.services.controller.image.topic_config("orders") == {"retention.ms": "5"}
        with pytest.raises(KafkaError) as refused:
            broker.create_topic("orders")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(KafkaError) as refused:
            broker.create_topic("typo", config={"retention.msec": 5})
        assert refused.value.code is ErrorCode.INVALID_CONFIG

        broker.create_topic("kept")
        assert produce(broker.bootstrap, "kept", 0, [b"a"]) == [0]
        broker.restart()
        assert produce(broker.bootstrap, "kept", 0, [b"b"]) == [1]
        broker.crash()
        broker.start()
        assert [one.value for one in consume(broker.bootstrap, "kept", 0)] == [b"a", b"b"]

        with broker.fault(broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)) as fault:
            assert produce(broker.bootstrap, "kept", 0, [b"c"]) == [2]
            assert fault.is_over
        with broker.fault(broker.fail("CreateTopics", "POLICY_VIOLATION")):
            broker.create_topic("unhindered")  # faults of client requests do not affect the broker's own requests
        with socket.create_connection(("127.0.0.1", broker.port)) as connection:
            eventually(broker.drop_connections, "it is accepted, and dropped")
            assert connection.recv(1) == b""
        broker.move_clock(3_600_000)  # an hour: no session expires, and no request times out
        broker.create_topic("later")
        assert produce(broker.bootstrap, "later", 0, [b"d"]) == [0]
        with urlopen(broker.metrics) as page:
            assert b"kafka_server" in page.read()
    with pytest.raises(tailrace.embedded.broker.NotRunning):
        broker.create_topic("too late")
