"""Transactional producers of several clients, unchanged, with `tailrace serve`: commit, abort, fence, offsets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.confluent import TIMEOUT_S, create_topic, produce
from tests.support.foreign_clients import go_program
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.tailrace_process import TailraceProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TailraceProcess]:
    few = ("-o", "transaction.state.log.num.partitions=2", "-o", "offsets.topic.num.partitions=2")
    process = TailraceProcess(tmp_path_factory.mktemp("clients") / "data", *few)
    with process:
        yield process
        assert process.stop() == 0
    assert process.errors == ""


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """Return the records that librdkafka reads with read_committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    values = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            if message.error() is not None:
                return values
            values.append(message.value())
    finally:
        consumer.close()


def test_librdkafka_consumes_and_produces_exactly_once(broker: TailraceProcess, topic: str) -> None:
    source, sink = f"{topic}-in", f"{topic}-out"
    for name in (source, sink):
        create_topic(broker.bootstrap, name)
    produce(broker.bootstrap, source, 0, [b"%d" % number for number in range(30)])
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    done = rounds = 0
    while done < 30:
        messages = consumer.consume(10, TIMEOUT_S if not rounds else 2)
        assert messages or rounds
        producer.begin_transaction()
        rounds += 1
        for message in messages:
            producer.produce(sink, message.value() + b"!")
        place = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(place, consumer.consumer_group_metadata(), TIMEOUT_S)
        if rounds == 2:
            producer.abort_transaction(TIMEOUT_S)
            (back,) = consumer.committed(place, TIMEOUT_S)
            assert back.offset == done, "an abort changes no offsets"
            consumer.seek(back)
            continue
        producer.commit_transaction(TIMEOUT_S)
        done += len(messages)
    consumer.close()
    assert committed(broker.bootstrap, sink) == [b"%d!" % number for number in range(30)]


def test_librdkafka_fences_an_older_instance(broker: TailraceProcess, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    old, new = Producer(settings), Producer(settings)
    old.init_transactions(TIMEOUT_S)
    old.begin_transaction()
    old.produce(topic, b"of the old one")
    assert old.flush(TIMEOUT_S) == 0
    new.init_transactions(TIMEOUT_S)
    with pytest.raises(KafkaException, match="fenced"):
        old.commit_transaction(TIMEOUT_S)
    new.begin_transaction()
    new.produce(topic, b"of the new one")
    new.commit_transaction(TIMEOUT_S)
    assert committed(broker.bootstrap, topic) == [b"of the new one"]


def test_aiokafka_commits_and_aborts_transactions_with_offsets(broker: TailraceProcess, topic: str) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import TopicPartition as Partition

    create_topic(broker.bootstrap, topic)

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"one")
                await producer.send_offsets_to_transaction({Partition(topic, 0): 5}, f"{topic}-group")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"never")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"two")
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))
    assert committed(broker.bootstrap, topic) == [b"one", b"two"]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"{topic}-group"})
    (found,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
    consumer.close()
    assert found.offset == 5


def test_kafka_python_commits_and_aborts_transactions(broker: TailraceProcess, topic: str) -> None:
    from kafka import KafkaProducer

    create_topic(broker.bootstrap, topic)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
    try:
        producer.init_transactions()
        for value, ends in ((b"one", True), (b"never", False), (b"two", True)):
            producer.begin_transaction()
            producer.send(topic, value, partition=0).get(TIMEOUT_S)
            if ends:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close(timeout=5)
    assert committed(broker.bootstrap, topic) == [b"one", b"two"]


@pytest.mark.parametrize("version", [(), ("2.3.0",)], ids=["newest", "2019"])
def test_franz_go_commits_aborts_and_is_fenced(bootstrap: str, topic: str, version: tuple[str, ...]) -> None:
    """With both transaction protocols, at Apache Kafka as well."""
    create_topic(bootstrap, topic)
    reported = json.loads(go_program("franztransactions")(bootstrap, topic, *version))
    assert reported == {"committed": ["one", "one", "two", "two", "three", "three"], "fenced": True}


@pytest.mark.kafka
def test_the_java_producer_uses_the_newer_transaction_protocol(
    broker: TailraceProcess, topic: str, log_oracle: LogOracle
) -> None:
    create_topic(broker.bootstrap, topic)
    with log_oracle.connect(broker.bootstrap) as java:
        for number, end in enumerate(["commit", "abort", "commit", "open"]):
            records = [OracleRecord(timestamp=1_700_000_000_000, key=None, value=b"%d" % number)]
            java.transaction(f"{topic}-{number % 2}", topic, 0, records, records, end=end)  # type: ignore[arg-type]
        found = [one.value for one in java.consume(topic, 0, isolation="read_committed")]
    assert found == [b"0", b"0", b"2", b"2"]
    assert committed(broker.bootstrap, topic) == found
