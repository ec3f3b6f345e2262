"""Kafka's clients, unchanged, with `tailrace serve`. Groups are in test_groups.py."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.confluent import consume, create_topic, produce
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess

COUNT = 300
PARTITIONS = 3
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TailraceProcess]:
    """Start one broker for all tests; each test uses its own topics."""
    process = TailraceProcess(tmp_path_factory.mktemp("clients") / "data")
    with process:
        yield process
        assert process.stop() == 0
    assert process.errors == ""


def key(number: int) -> bytes:
    return f"key-{number}".encode()


def value(number: int) -> bytes:
    return f"value {number} ".encode() * (number % 50 + 1)


EXPECTED = {(key(number), value(number)) for number in range(COUNT)}


# librdkafka


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_writes_reads_and_looks_up_offsets(broker: TailraceProcess, codec: str) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

    topic = f"librdkafka-{codec}"
    create_topic(broker.bootstrap, topic, PARTITIONS)
    problems: list[Any] = []
    offsets: dict[int, list[int]] = {}

    def delivered(error: Any, message: Any) -> None:
        problems.extend([error] if error else [])
        offsets.setdefault(message.partition(), []).append(message.offset())

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 5,
            "batch.num.messages": 40,
        }
    )
    for number in range(COUNT):
        producer.produce(topic, value(number), key(number), headers={"n": str(number).encode()}, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0
    assert problems == []
    for got in offsets.values():  # none skipped, none twice, in sending order
        assert got == list(range(len(got)))

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    read = set()
    deadline = time.monotonic() + TIMEOUT_S
    while len(read) < COUNT and time.monotonic() < deadline:
        for message in consumer.consume(COUNT, 1.0):
            assert message.error() is None
            number = int(dict(message.headers())["n"])
            assert message.key() == key(number)
            read.add((message.key(), message.value()))
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    consumer.close()
    assert read == EXPECTED
    assert (low, high) == (0, len(offsets[0]))


def test_librdkafka_creates_a_topic_by_writing_to_it(broker: TailraceProcess) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "1"})
    got: list[Any] = []
    producer.produce("made-by-writing", b"x", on_delivery=lambda error, message: got.append((error, message.offset())))
    assert producer.flush(TIMEOUT_S) == 0
    assert got == [(None, 0)]


# Clients in Python


def test_kafka_python_writes_and_reads(broker: TailraceProcess) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import KafkaAdminClient, NewTopic

    topic = "kafka-python"
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", compression_type="gzip", linger_ms=5)
    sent = [producer.send(topic, key=key(number), value=value(number)) for number in range(COUNT)]
    producer.flush(TIMEOUT_S)
    placed = {(done.partition, done.offset) for done in (future.get(TIMEOUT_S) for future in sent)}
    producer.close()
    assert len(placed) == COUNT

    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, consumer_timeout_ms=TIMEOUT_S * 1000)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    read = set()
    for message in consumer:
        assert (message.partition, message.offset) in placed
        read.add((message.key, message.value))
        if len(read) == COUNT:
            break
    ends = consumer.end_offsets(partitions)
    consumer.close()
    assert read == EXPECTED
    assert sum(ends.values()) == COUNT


def test_aiokafka_writes_and_reads(broker: TailraceProcess) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    topic = "aiokafka"
    create_topic(broker.bootstrap, topic, PARTITIONS)

    async def run() -> set[tuple[bytes, bytes]]:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True, linger_ms=5)
        await producer.start()
        try:
            futures = [await producer.send(topic, value(number), key(number)) for number in range(COUNT)]
            await asyncio.gather(*futures)
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        await consumer.start()
        read = set()
        try:
            async for message in consumer:
                read.add((message.key, message.value))
                if len(read) == COUNT:
                    break
        finally:
            await consumer.stop()
        return read

    assert asyncio.run(asyncio.wait_for(run(), TIMEOUT_S)) == EXPECTED


# Java


@pytest.mark.kafka
def test_java_console_tools_write_and_read(broker: TailraceProcess, kafka: KafkaInstallation, tmp_path: Path) -> None:
    topic, server = "java", ("--bootstrap-server", broker.bootstrap)
    topics = "org.apache.kafka.tools.TopicCommand"
    made = ("--topic", topic, "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=86400000")
    assert f"Created topic {topic}." in kafka.tool(topics, *server, "--create", *made)
    described = kafka.tool(topics, *server, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=86400000" in described
    assert described.count("Leader: 1") == 3

    lines = [f"k{number}:line {number}" for number in range(COUNT)]
    properties = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    kafka.tool(
        "org.apache.kafka.tools.ConsoleProducer", *server, "--topic", topic, *properties, stdin="\n".join(lines) + "\n"
    )
    ends = kafka.tool("org.apache.kafka.tools.GetOffsetShell", *server, "--topic", topic).split()
    by_partition = {int(end.split(":")[1]): int(end.split(":")[2]) for end in ends}
    assert sum(by_partition.values()) == COUNT

    read = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*server, "--topic", topic, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", str(by_partition[0]), "--timeout-ms", "30000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:"),
    ).splitlines()
    assert len(read) == by_partition[0]
    assert set(read) <= set(lines)
    assert read == sorted(read, key=lambda line: int(line.split()[1]))  # in sending order


@pytest.mark.kafka
def test_java_producer_performance_tool_completes(broker: TailraceProcess, kafka: KafkaInstallation) -> None:
    output = kafka.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "java-perf", "--num-records", "20000", "--record-size", "500", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}", "linger.ms=5", "compression.type=lz4"),
    )
    assert "20000 records sent" in output
    ends = kafka.tool(
        "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", broker.bootstrap, "--topic", "java-perf"
    )
    assert ends.split() == ["java-perf:0:20000"]


@pytest.mark.kafka
def test_java_admin_tools_work(broker: TailraceProcess, kafka: KafkaInstallation, tmp_path: Path) -> None:
    topic, server = "java-admin", ("--bootstrap-server", broker.bootstrap)
    create_topic(broker.bootstrap, topic, 2)
    produce(broker.bootstrap, topic, 0, [value(number) for number in range(50)])

    configs = ("kafka.admin.ConfigCommand", *server, "--entity-type", "topics", "--entity-name", topic)
    kafka.tool(*configs, "--alter", "--add-config", "retention.ms=1234567")
    assert "retention.ms=1234567 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:" in kafka.tool(*configs, "--describe")

    output = kafka.tool("org.apache.kafka.tools.LogDirsCommand", *server, "--describe", "--topic-list", topic)
    (node,) = json.loads(output.splitlines()[-1])["brokers"]
    (log_dir,) = node["logDirs"]
    assert log_dir["logDir"] == str(broker.data)
    sizes = {partition["partition"]: partition["size"] for partition in log_dir["partitions"]}
    assert sizes == {
        f"{topic}-{number}": sum(file.stat().st_size for file in (broker.data / f"{topic}-{number}").glob("*.log"))
        for number in range(2)
    }

    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 10}]}))
    output = kafka.tool("org.apache.kafka.tools.DeleteRecordsCommand", *server, "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 10" in output
    assert [got.offset for got in consume(broker.bootstrap, topic, 0, 10)] == list(range(10, 50))

    topics = ("org.apache.kafka.tools.TopicCommand", *server)
    kafka.tool(*topics, "--alter", "--topic", topic, "--partitions", "4")
    assert "PartitionCount: 4" in kafka.tool(*topics, "--describe", "--topic", topic)
    kafka.tool(*topics, "--delete", "--topic", topic)
    assert topic not in kafka.tool(*topics, "--list").split()
