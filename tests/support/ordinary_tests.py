"""Twenty ordinary tests of a program that uses Kafka: producing, groups, transactions and administration.

`tests/integration/test_pytest_plugin.py` runs them as a test suite of its own, with the fixtures of the pytest plugin.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

TIMEOUT_S = 20


def send(broker: Any, topic: str, *values: bytes, **settings: Any) -> list[KafkaError | None]:
    """Send records, and return the error of each delivery report."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, record: errors.append(error))
    producer.flush(TIMEOUT_S)
    return errors


def consumer_of(broker: Any, group: str, *topics: str, **settings: Any) -> Consumer:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings}
    )
    consumer.subscribe(list(topics))
    return consumer


def take(consumer: Consumer, count: int) -> list[bytes | None]:
    """Return the values of the next records, and close the consumer."""
    records: list[Message] = []
    while len(records) < count:
        found = consumer.poll(TIMEOUT_S)
        assert found is not None
        assert found.error() is None, found.error()
        records.append(found)
    consumer.close()
    return [record.value() for record in records]


def commit_of(broker: Any, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    (partition,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
    consumer.close()
    return partition.offset


def admin_of(broker: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def transactional(broker: Any, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    return producer


# Producing


def test_a_topic_is_created_by_the_first_record(kafka_broker):
    assert send(kafka_broker, "orders", b"1") == [None]


@pytest.mark.kafka_topics("orders")
def test_an_idempotent_producer_writes_in_order(kafka_broker):
    values = [b"%d" % i for i in range(100)]
    assert send(kafka_broker, "orders", *values, **{"enable.idempotence": True}) == [None] * 100
    assert take(consumer_of(kafka_broker, "g", "orders"), 100) == values


@pytest.mark.kafka_topics("orders", config={"max.message.bytes": 1000})
def test_a_large_record_is_refused(kafka_broker):
    (error,) = send(kafka_broker, "orders", b"x" * 2000)
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE


@pytest.mark.kafka_topics("orders", partitions=3)
def test_records_of_a_key_are_in_one_partition(kafka_broker):
    partitions = set()
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for i in range(10):
        producer.produce("orders", b"%d" % i, b"key", on_delivery=lambda _, record: partitions.add(record.partition()))
    producer.flush(TIMEOUT_S)
    assert len(partitions) == 1


@pytest.mark.kafka_topics("orders")
def test_compressed_records_are_read_as_written(kafka_broker):
    send(kafka_broker, "orders", *[b"x" * 500] * 10, **{"compression.type": "zstd"})
    assert take(consumer_of(kafka_broker, "g", "orders"), 10) == [b"x" * 500] * 10


@pytest.mark.kafka_topics("orders")
def test_a_lost_response_does_not_duplicate_a_record(kafka_broker):
    kafka_broker.drop("Produce", times=1, carried_out=True)
    settings = {"enable.idempotence": True, "retry.backoff.ms": 10, "reconnect.backoff.ms": 0}
    assert send(kafka_broker, "orders", b"1", **settings) == [None]
    consumer = Consumer({"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g"})
    assert consumer.get_watermark_offsets(TopicPartition("orders", 0)) == (0, 1)
    consumer.close()


# Groups


@pytest.mark.kafka_topics("orders")
def test_a_group_reads_from_the_beginning(kafka_broker):
    send(kafka_broker, "orders", b"1", b"2")
    assert take(consumer_of(kafka_broker, "g", "orders"), 2) == [b"1", b"2"]


@pytest.mark.kafka_topics("orders")
def test_a_group_resumes_after_its_commit(kafka_broker):
    send(kafka_broker, "orders", b"1", b"2", b"3")
    first = consumer_of(kafka_broker, "g", "orders", **{"enable.auto.commit": False})
    record = first.poll(TIMEOUT_S)
    first.commit(record, asynchronous=False)
    first.close()
    assert take(consumer_of(kafka_broker, "g", "orders"), 2) == [b"2", b"3"]


@pytest.mark.kafka_topics("orders")
def test_closing_a_consumer_commits_its_position(kafka_broker):
    send(kafka_broker, "orders", b"1", b"2")
    take(consumer_of(kafka_broker, "g", "orders"), 2)
    assert commit_of(kafka_broker, "g", "orders") == 2


@pytest.mark.kafka_topics("orders", partitions=2)
def test_two_groups_read_independently(kafka_broker):
    send(kafka_broker, "orders", *[b"x"] * 10)
    assert len(take(consumer_of(kafka_broker, "a", "orders"), 10)) == 10
    assert len(take(consumer_of(kafka_broker, "b", "orders"), 10)) == 10


@pytest.mark.kafka_topics("orders")
def test_kafka_python_reads_in_a_group(kafka_broker):
    send(kafka_broker, "orders", b"1")
    with kafka.KafkaConsumer(
        "orders",
        bootstrap_servers=kafka_broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
    ) as consumer:
        assert next(consumer).value == b"1"


@pytest.mark.kafka_topics("orders")
def test_aiokafka_writes_and_reads(kafka_broker):
    async def exchange() -> Any:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", b"1")
        async with aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers=kafka_broker.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
        ) as consumer:
            return await asyncio.wait_for(consumer.getone(), TIMEOUT_S)

    assert asyncio.run(exchange()).value == b"1"


# Transactions


@pytest.mark.kafka_topics("orders")
def test_a_committed_transaction_is_read(kafka_broker):
    producer = transactional(kafka_broker, "tx")
    producer.begin_transaction()
    producer.produce("orders", b"1")
    producer.commit_transaction(TIMEOUT_S)
    assert take(consumer_of(kafka_broker, "g", "orders"), 1) == [b"1"]


@pytest.mark.kafka_topics("orders")
def test_an_aborted_transaction_is_not_read(kafka_broker):
    producer = transactional(kafka_broker, "tx")
    producer.begin_transaction()
    producer.produce("orders", b"aborted")
    producer.flush(TIMEOUT_S)
    producer.abort_transaction(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("orders", b"committed")
    producer.commit_transaction(TIMEOUT_S)
    assert take(consumer_of(kafka_broker, "g", "orders"), 1) == [b"committed"]


@pytest.mark.kafka_topics("orders", "bills")
def test_a_transaction_commits_the_offsets_that_it_read(kafka_broker):
    send(kafka_broker, "orders", b"1", b"2")
    consumer = consumer_of(kafka_broker, "g", "orders", **{"enable.auto.commit": False})
    producer = transactional(kafka_broker, "tx")
    producer.begin_transaction()
    for _ in range(2):
        producer.produce("bills", consumer.poll(TIMEOUT_S).value())
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT_S
    )
    producer.commit_transaction(TIMEOUT_S)
    consumer.close()
    assert commit_of(kafka_broker, "g", "orders") == 2
    assert take(consumer_of(kafka_broker, "h", "bills"), 2) == [b"1", b"2"]


@pytest.mark.kafka_topics("orders")
def test_a_second_producer_fences_the_first(kafka_broker):
    first = transactional(kafka_broker, "tx")
    first.begin_transaction()
    transactional(kafka_broker, "tx")
    first.produce("orders", b"1")
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(TIMEOUT_S)
    assert caught.value.args[0].fatal()


# Administration


def test_topics_are_created_and_deleted(kafka_broker):
    admin = admin_of(kafka_broker)
    admin.create_topics([NewTopic("orders", 3)])["orders"].result(TIMEOUT_S)
    assert len(admin.list_topics("orders", TIMEOUT_S).topics["orders"].partitions) == 3
    admin.delete_topics(["orders"])["orders"].result(TIMEOUT_S)
    assert "orders" not in admin.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.kafka_topics("orders")
def test_partitions_are_added(kafka_broker):
    admin = admin_of(kafka_broker)
    admin.create_partitions([NewPartitions("orders", 4)])["orders"].result(TIMEOUT_S)
    assert len(admin.list_topics("orders", TIMEOUT_S).topics["orders"].partitions) == 4


@pytest.mark.kafka_topics("orders")
def test_the_config_of_a_topic_is_changed(kafka_broker):
    admin = admin_of(kafka_broker)
    entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    configs = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "orders")])
    (described,) = [future.result(TIMEOUT_S) for future in configs.values()]
    assert described["retention.ms"].value == "1000"


@pytest.mark.kafka_topics("orders")
def test_groups_are_listed_and_deleted(kafka_broker):
    send(kafka_broker, "orders", b"1")
    take(consumer_of(kafka_broker, "kitchen", "orders"), 1)
    admin = admin_of(kafka_broker)
    listed = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert [group.group_id for group in listed] == ["kitchen"]
    admin.delete_consumer_groups(["kitchen"])["kitchen"].result(TIMEOUT_S)
    assert admin.list_consumer_groups().result(TIMEOUT_S).valid == []
