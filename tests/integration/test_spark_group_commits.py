"""The progress of a stream is committed to a consumer group of Tailrace and of Apache Kafka."""

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
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.model.ids import TopicPartition
from tailrace.spark.source.data_source import LogDataSource
from tailrace.spark.source.errors import NotCommitted, WrongOption
from tailrace.spark.source.group_commits import GroupCommits
from tailrace.spark.source.options import WireOptions
from tests.support.command import tailrace as command
from tests.support.filled_topics import numbered, put
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import kafka_installation
from tests.support.spark_types import default_struct

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


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


def stream(bootstrap: str, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "startingOffsets": "earliest", **options}
    return LogDataSource(given).streamReader(default_struct())


def committed(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    with ClusterClient(bootstrap) as cluster:
        return {one: noted.offset for one, noted in committed_offsets(Coordinators(cluster), group).items()}


def test_a_finished_batch_is_committed_and_a_group_with_members_refuses(bootstrap: str) -> None:
    from confluent_kafka import Consumer

    put(bootstrap, "t", 0, numbered(5))
    reader = stream(bootstrap, commitOffsetsToGroup="lag-tool")
    assert committed(bootstrap, "lag-tool") == {}
    reader.commit({"t": {"0": 5, "1": 0}})
    assert committed(bootstrap, "lag-tool") == {T0: 5, T1: 0}
    reader.commit({"t": {"0": 7, "1": 2}})
    assert committed(bootstrap, "lag-tool") == {T0: 7, T1: 2}
    stream(bootstrap).commit({"t": {"0": 9}})  # the option is not set
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "lag-tool", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["t"])
        for _ in range(200):
            consumer.poll(0.1)
            if consumer.assignment():
                break
        with pytest.raises(NotCommitted, match="to group lag-tool: group lag-tool"):
            reader.commit({"t": {"0": 8, "1": 2}})
    finally:
        consumer.close()
    reader.stop()


def test_group_commits_need_a_cluster(tmp_path: Path) -> None:
    source = LogDataSource({"path": str(tmp_path), "subscribe": "t", "commitOffsetsToGroup": "g"})
    with pytest.raises(WrongOption, match=r"needs kafka\.bootstrap\.servers"):
        source.streamReader(default_struct())


def test_cluster_queries_shows_the_batches_of_a_stream_and_an_export(bootstrap: str, tmp_path: Path) -> None:
    put(bootstrap, "t", 0, numbered(5))
    reader = stream(bootstrap, commitOffsetsToGroup="dashboard")
    reader.commit({"t": {"0": 5, "1": 0}})
    shown = command("cluster", "queries", "--bootstrap", bootstrap, "--json").json["reads"]
    assert [(one["group"], one["batch"], one["batchOffsets"]) for one in shown] == [("dashboard", 1, None)]
    put(bootstrap, "t", 1, numbered(12))
    reader.commit({"t": {"0": 5, "1": 12}})
    reader.stop()
    export = GroupCommits("lake", WireOptions(bootstrap=bootstrap), table="lake.orders")
    for end in (3, 5):
        export.commit({T0: end, T1: 12})
    export.close()
    shown = command("cluster", "queries", "--bootstrap", bootstrap, "--json").json["reads"]
    facts = ("group", "kind", "table", "topics", "lag", "batch", "batchOffsets")
    assert [tuple(one[name] for name in facts) for one in shown] == [
        ("dashboard", "stream", None, ["t"], 0, 2, 12),
        ("lake", "table", "lake.orders", ["t"], 0, 2, 2),
    ]
