"""A query starts at the committed offsets of a consumer group of Tailrace and of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import tailrace
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.spark.source.data_source import LogDataSource
from tailrace.spark.source.errors import OffsetRangeLost, WrongOption
from tests.support.filled_topics import numbered, put
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import kafka_installation
from tests.support.source_rows import offsets, read
from tests.support.spark_types import default_struct


@pytest.fixture(params=["ours", pytest.param("kafka", marks=pytest.mark.kafka)])
def bootstrap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "ours":
        with tailrace.Broker(tmp_path / "data") as broker:
            broker.create_topic("t", partitions=2)
            yield broker.bootstrap
        return
    with KafkaBroker(kafka_installation(), tmp_path) as kafka:
        with ClusterClient(kafka.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name="t", partitions=2, replication_factor=1))
        yield kafka.bootstrap


def commit(bootstrap: str, group: str, **offsets_by_partition: int) -> None:
    """Commit with another client than ours."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    wanted = [TopicPartition("t", int(name[1:]), offset) for name, offset in offsets_by_partition.items()]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def query(bootstrap: str, start: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "startingOffsets": start, **more}


def initial(bootstrap: str, start: str, **more: str) -> Any:
    reader: Any = LogDataSource(query(bootstrap, start, **more)).streamReader(default_struct())
    try:
        return reader.initialOffset()
    finally:
        reader.stop()


def test_a_query_starts_where_the_group_has_committed(bootstrap: str) -> None:
    put(bootstrap, "t", 0, numbered(8))
    put(bootstrap, "t", 1, numbered(4))
    commit(bootstrap, "orders app", p0=6, p1=4)
    assert offsets(read(query(bootstrap, "group:orders app"))) == [6, 7]
    assert initial(bootstrap, "group:orders app") == {"t": {"0": 6, "1": 4}}


def test_a_partition_without_a_commit_starts_by_the_rule(bootstrap: str) -> None:
    put(bootstrap, "t", 0, numbered(3))
    put(bootstrap, "t", 1, numbered(2))
    commit(bootstrap, "g", p0=2)
    assert initial(bootstrap, "group:g") == {"t": {"0": 2, "1": 0}}
    assert initial(bootstrap, "group:g", startingOffsetsWithoutCommit="latest") == {"t": {"0": 2, "1": 2}}
    with pytest.raises(WrongOption, match="group g has no offset for t-1; set startingOffsetsWithoutCommit"):
        initial(bootstrap, "group:g", startingOffsetsWithoutCommit="error")


def test_a_group_without_any_commit_is_an_error_unless_a_rule_is_set(bootstrap: str) -> None:
    put(bootstrap, "t", 0, numbered(3))
    with pytest.raises(WrongOption, match="group misspelled has no offset for any selected partition"):
        read(query(bootstrap, "group:misspelled"))
    assert len(read(query(bootstrap, "group:misspelled", startingOffsetsWithoutCommit="earliest"))) == 3


def test_a_commit_past_the_end_of_the_log_is_an_error(bootstrap: str) -> None:
    put(bootstrap, "t", 0, numbered(3))
    commit(bootstrap, "g", p0=9, p1=0)
    with pytest.raises(OffsetRangeLost, match="offsets 3 to 8 of t-0 are missing: the log ends at 3"):
        read(query(bootstrap, "group:g"))
