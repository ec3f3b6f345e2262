"""Brokers of Tailrace and of Apache Kafka below a controller of Tailrace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.confluent import consume, produce
from tests.support.kafka_install import KafkaInstallation
from tests.support.replicated_cluster import brokers_below
from tests.support.steady_load import IDEMPOTENT, SteadyLoad
from tests.support.tailrace_controller import TailraceController

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CONTROLLER = {"broker.session.timeout.ms": "3000"}
BROKERS = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
}


def test_kafka_and_tailrace_brokers_share_topics_and_take_over(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with (
        TailraceController(kafka, tmp_path, properties=CONTROLLER) as controller,
        brokers_below(controller, tmp_path, BROKERS, ours=[1, 3], theirs=[2]) as cluster,
    ):
        cluster.create("led-by-kafka", [[2, 1, 3]], min_insync_replicas="2")
        cluster.create("led-by-us", [[1, 2, 3]], min_insync_replicas="2")
        sent = [b"%d" % number for number in range(1_000)]
        for topic in ("led-by-kafka", "led-by-us"):
            assert produce(cluster.bootstrap, topic, 0, sent, acks="all") == list(range(1_000))
            assert [one.value for one in consume(cluster.bootstrap, topic, 0)] == sent
            cluster.await_same(topic, 0, [1, 2, 3])
        with SteadyLoad(cluster.bootstrap, "led-by-kafka", IDEMPOTENT) as load:
            load.await_more()
            cluster.kill(2)
            cluster.await_leader("led-by-kafka", 0, [1, 3])
            load.await_more()
            controller.nodes[0].kill()
            load.await_more()  # brokers serve without their controller
            controller.nodes[0].start()
            cluster.start(2)
            cluster.await_isr("led-by-kafka", 0, [1, 2, 3])
            load.await_more()
        found = {one.offset: one.value for one in consume(cluster.bootstrap, "led-by-kafka", 0)}
        assert load.refused == []
        assert {offset: found.get(offset) for offset in load.acknowledged} == load.acknowledged
        cluster.await_same("led-by-kafka", 0, [1, 2, 3])


def test_kafkas_tools_work_at_the_controller_and_through_brokers(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with (
        TailraceController(kafka, tmp_path, properties=CONTROLLER) as controller,
        brokers_below(controller, tmp_path, BROKERS, ours=[1, 2]) as cluster,
    ):
        for where in (("--bootstrap-controller", controller.bootstrap), ("--bootstrap-server", cluster.bootstrap)):
            output = kafka.tool("org.apache.kafka.tools.MetadataQuorumCommand", *where, "describe", "--replication")
            rows = [line.split() for line in output.splitlines()[1:]]
            assert [(row[0], row[-1]) for row in rows] == [("3000", "Leader"), ("1", "Observer"), ("2", "Observer")]
        features = kafka.tool(
            "org.apache.kafka.tools.FeatureCommand", "--bootstrap-controller", controller.bootstrap, "describe"
        )
        assert "metadata.version" in features
        kafka.tool(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-controller", controller.bootstrap, "--entity-type", "brokers", "--entity-default"),
            *("--alter", "--add-config", "log.retention.ms=123456"),
        )
        described = kafka.tool(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", cluster.bootstrap, "--entity-type", "brokers", "--entity-default", "--describe"),
        )
        assert "log.retention.ms=123456" in described
