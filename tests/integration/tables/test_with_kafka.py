"""Tables of a topic in Apache Kafka have the records that its consumers see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tests.support.exported_tables import FORMATS, export, rows
from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.kafka
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def write(bootstrap: str, number: int) -> None:
    """Write a committed and an aborted transaction, with nulls and headers."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "t",
            "compression.type": CODECS[number % len(CODECS)],
        }
    )
    producer.init_transactions(60)
    for is_committed in (True, False):
        producer.begin_transaction()
        for one in range(20):
            value = None if one % 5 == 0 else b"%d %d %s" % (number, one, str(is_committed).encode())
            key = None if one % 3 == 0 else b"k%d" % one
            producer.produce("t", key=key, value=value, partition=one % 2, headers=[("h", b"%d" % one), ("n", None)])
        if is_committed:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)


def consumed(bootstrap: str, count: int) -> list[tuple[Any, ...]]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("t", number, 0) for number in range(2)])
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        headers = [tuple(header) for header in message.headers()]
        place = message.partition(), message.offset()
        found.append((*place, message.key(), message.value(), message.timestamp()[1], headers))
    consumer.close()
    return sorted(found, key=lambda record: record[:2])


@pytest.mark.parametrize("form", FORMATS)
def test_a_table_has_the_records_that_a_consumer_of_kafka_sees(form: str, kafka: Any, tmp_path: Path) -> None:
    with KafkaBroker(kafka, tmp_path / "kafka") as broker:
        with ClusterClient(broker.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name="t", partitions=2, replication_factor=1))
        for number in range(len(CODECS)):
            write(broker.bootstrap, number)
            export(form, tmp_path / "out", broker.bootstrap)
        found = rows(form, tmp_path / "out")
        assert [
            (
                row["partition"],
                row["offset"],
                row["key"],
                row["value"],
                round(row["timestamp"].timestamp() * 1000),
                [(header["key"], header["value"]) for header in row["headers"]],
            )
            for row in found
        ] == consumed(broker.bootstrap, 100)
