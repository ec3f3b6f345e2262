"""The same requests to Kafka and to Tailrace, and then the counters of both: Kafka's over JMX, ours from /metrics."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest

from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.metrics.scrape import Scrape
from tailrace.protocol.messages import FetchRequest, ProduceRequest
from tailrace.records.builder import BatchBuilder
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess

NOW_MS = 1_700_000_000_000
TOPICS = ("plain", "small", "keyed")
NAMES = (
    "MessagesIn",
    "BytesIn",
    "BytesOut",
    "BytesRejected",
    "TotalProduceRequests",
    "TotalFetchRequests",
    "FailedProduceRequests",
    "FailedFetchRequests",
)
_JMX = re.compile(r"kafka\.server:type=BrokerTopicMetrics,name=(\w+)PerSec,topic=(\w+):Count=(\d+)")


def batch(records: int, size: int = 20) -> bytes:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(NOW_MS, key=None, value=b"x" * size)
    return bytes(builder.build())


def load(bootstrap: str) -> None:
    """Send requests that change every counter."""
    with ClusterClient(bootstrap) as cluster:
        for name, partitions, configs in (
            ("plain", 2, {}),
            ("small", 1, {"max.message.bytes": "200"}),
            ("keyed", 1, {"cleanup.policy": "compact"}),
        ):
            create_topic(cluster, NewTopic(name=name, partitions=partitions, replication_factor=1, config=configs))
        ids = {name: cluster.topic(name).topic_id for name in TOPICS}

        def produce(topic: str, *batches: bytes, acks: int = 1) -> None:
            parts = [ProduceRequest.PartitionProduceData(index=n, records=data) for n, data in enumerate(batches)]
            topics = [ProduceRequest.TopicProduceData(name=topic, topic_id=ids[topic], partition_data=parts)]
            cluster.ask_any(ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics), version_min=13)

        def fetch(topic: str, *offsets: int, max_bytes: int = 1_000_000) -> None:
            parts = [
                FetchRequest.FetchPartition(partition=n, fetch_offset=offset, partition_max_bytes=max_bytes)
                for n, offset in enumerate(offsets)
            ]
            topics = [FetchRequest.FetchTopic(topic=topic, topic_id=ids[topic], partitions=parts)]
            request = FetchRequest(min_bytes=1, max_bytes=1_000_000, session_epoch=-1, topics=topics)
            cluster.ask_any(request, version_min=13)

        for number in range(1, 6):
            produce("plain", batch(number), batch(2 * number), acks=(1, -1)[number % 2])
        produce("plain", batch(3))
        produce("small", batch(1, 50))
        produce("small", batch(1, 500))  # too large
        produce("keyed", batch(2))  # without keys
        fetch("plain", 0, 0)
        fetch("plain", 3, 1)
        fetch("plain", 0, 0, max_bytes=100)
        fetch("plain", 18)  # at the log end
        fetch("plain", 10_000)  # out of range
        fetch("small", 0)
        fetch("keyed", 0)


@pytest.mark.kafka
@pytest.mark.slow
def test_topic_counters_are_the_same_as_kafkas(kafka: KafkaInstallation, tmp_path: Path) -> None:
    jmx_port, metrics_port = free_port(), free_port()
    theirs = KafkaBroker(kafka, tmp_path / "kafka")
    flags = (f"port={jmx_port}", f"rmi.port={jmx_port}", "host=127.0.0.1", "authenticate=false", "ssl=false")
    try:
        theirs.start(
            jvm_flags=(
                "-Djava.rmi.server.hostname=127.0.0.1",
                *(f"-Dcom.sun.management.jmxremote.{flag}" for flag in flags),
            )
        )
        load(theirs.bootstrap)
        reported = theirs.tool(
            "org.apache.kafka.tools.JmxTool",
            *("--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{jmx_port}/jmxrmi"),
            *("--object-name", "kafka.server:type=BrokerTopicMetrics,*"),
            *("--attributes", "Count", "--one-time", "--report-format", "properties"),
        )
    finally:
        if theirs.process is not None:
            theirs.stop()
    counted = {(name, topic): int(count) for name, topic, count in _JMX.findall(reported)}
    expected = {key: count for key, count in counted.items() if key[0] in NAMES and key[1] in TOPICS}
    assert expected["MessagesIn", "plain"] == 48, reported

    with TailraceProcess(tmp_path / "ours", "--metrics-port", str(metrics_port)) as ours:
        load(ours.bootstrap)
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=30) as answer:
            scrape = Scrape(answer.read().decode())
    found = {
        (name, topic): int(scrape.sum(f"kafka_server_brokertopicmetrics_{name.lower()}_total", topic=topic))
        for name in NAMES
        for topic in TOPICS
    }
    assert {key: found[key] for key in expected} == expected
    assert {key: count for key, count in found.items() if key not in expected and count} == {}
