"""Clients push their metrics to Tailrace, and Prometheus scrapes them there."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

import tailrace
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.metrics.scrape import Scrape
from tailrace.protocol.messages import IncrementalAlterConfigsRequest
from tests.support.kafka_install import KafkaInstallation

TIMEOUT_S = 60
TOPIC = "orders"
SENT = "tailrace_client_producer_record_send_total"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    settings = {"tailrace.metrics.port": 0, "tailrace.telemetry.enable": "true"}
    with tailrace.Broker(tmp_path / "data", config=settings) as broker:
        broker.create_topic(TOPIC)
        request = IncrementalAlterConfigsRequest
        wanted = {"metrics": "*", "interval.ms": "200", "match": "client_id=(java|rdkafka)"}
        configs = [request.AlterableConfig(name=key, config_operation=0, value=text) for key, text in wanted.items()]
        resource = request.AlterConfigsResource(resource_type=16, resource_name="all", configs=configs)
        with ClusterClient(broker.bootstrap) as client:
            client.ask_any_once(request(resources=[resource]), TIMEOUT_S)
        yield broker


def scrape_until(broker: tailrace.Broker, is_there: Callable[[Scrape], bool]) -> Scrape:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        with urllib.request.urlopen(broker.metrics, timeout=30) as answer:
            scrape = Scrape(answer.read().decode())
        if is_there(scrape):
            return scrape
        assert time.monotonic() < deadline, "the client's metrics are not there"
        time.sleep(0.1)


def test_librdkafka_pushes_its_metrics(broker: tailrace.Broker) -> None:
    name = "tailrace_client_producer_node_request_latency_max"
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "rdkafka", "enable.metrics.push": True})
    producer.produce(TOPIC, b"x")
    assert producer.flush(TIMEOUT_S) == 0
    scrape = scrape_until(broker, lambda found: any(found.samples(name, client_id="rdkafka", node_id="1")))
    assert scrape.sum("tailrace_client_producer_connection_creation_total", client_id="rdkafka") >= 1
    assert scrape.value("tailrace_telemetry_skipped_points_total") == 0
    assert scrape.by("kafka_network_requestmetrics_errors_total", "error", request="PushTelemetry").keys() == {"NONE"}


def test_a_client_that_matches_no_subscription_pushes_nothing(broker: tailrace.Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "other", "enable.metrics.push": True})
    producer.produce(TOPIC, b"x")
    assert producer.flush(TIMEOUT_S) == 0
    scrape = scrape_until(broker, lambda found: found.value("kafka_server_client_metrics_instance_count") == 1)
    assert scrape.value("tailrace_telemetry_series") == 0


@pytest.mark.kafka
def test_the_java_producer_pushes_its_metrics(broker: tailrace.Broker, kafka: KafkaInstallation) -> None:
    command = kafka.command(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC),
        *("--command-property", "client.id=java", "--command-property", "linger.ms=0"),
    )
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(b"one\ntwo\n")
            process.stdin.flush()
            scrape = scrape_until(broker, lambda found: found.sum(SENT, client_id="java") == 2)
            assert scrape.sum("tailrace_client_producer_topic_record_send_total", topic=TOPIC) == 2
            assert scrape.value("tailrace_telemetry_series") > 50
            process.stdin.write(b"three\n")
            process.stdin.flush()
            scrape_until(broker, lambda found: found.sum(SENT, client_id="java") == 3)
            process.stdin.close()
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
    # the values of the last push stay
    scrape = scrape_until(broker, lambda found: found.sum(SENT, client_id="java") == 3)
    assert scrape.value("tailrace_telemetry_skipped_points_total") == 0
    assert scrape.by("kafka_network_requestmetrics_errors_total", "error", request="PushTelemetry").keys() == {"NONE"}
