"""Short helpers around librdkafka, for any broker: create topics, write records in order, read them back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60.0


class Got(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


def create_topic(bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))]).values():
        future.result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, partition: int, values: Iterable[bytes], **settings: Any) -> list[int]:
    """Send values with an idempotent producer, and return their offsets."""
    offsets: list[int] = []
    problems: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        problems.extend([error] if error else [])
        offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})
    for value in values:
        producer.produce(topic, value, b"key", partition, delivered)
    assert producer.flush(TIMEOUT_S) == 0
    assert problems == []
    return offsets


def watermarks(bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
    """Return the first and the end offset of a partition for consumers, as its leader reports them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    try:
        return _watermarks(consumer, TopicPartition(topic, partition), time.monotonic() + TIMEOUT_S)
    finally:
        consumer.close()


def _watermarks(consumer: Consumer, place: TopicPartition, deadline: float) -> tuple[int, int]:
    """Retry until a leader responds: a broker that has just started may not know yet that it leads."""
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, TIMEOUT_S)
            return int(low), int(high)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def consume(bootstrap: str, topic: str, partition: int, start: int = 0) -> list[Got]:
    """Return all records from an offset up to the end at the time of the call."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    try:
        place = TopicPartition(topic, partition, start)
        deadline = time.monotonic() + TIMEOUT_S
        _, end = _watermarks(consumer, place, deadline)
        consumer.assign([place])
        read: list[Got] = []
        while start < end and (not read or read[-1].offset < end - 1):
            assert time.monotonic() < deadline, f"{len(read)} records of {topic}-{partition} read, {end} is the end"
            for message in consumer.consume(10_000, 0.5):
                assert message.error() is None, message.error()
                read.append(Got(message.offset(), message.key(), message.value()))
        return read
    finally:
        consumer.close()
