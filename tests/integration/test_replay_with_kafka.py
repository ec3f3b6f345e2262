"""Replays from and to Apache Kafka: transactions, compressed batches, compacted batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.records.batch import Codec
from tailrace.spark.jobs.diff.diff import compare, plan_diff
from tailrace.spark.jobs.replay.copy import replay_partition
from tailrace.spark.jobs.replay.replay import plan_replay
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden
from tests.support.kafka_broker import KafkaBroker


def is_equal(here: str, there: str, **options: Any) -> bool:
    report, tasks = plan_diff(here, there, read_committed=True, **options)
    for task in tasks:
        report.partitions[task.partition].add(compare(task))
    return report.is_equal


@pytest.mark.slow
def test_records_replayed_to_kafka_and_back_have_no_diff(
    kafka_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    path = str(golden("broker-clean").unpack(tmp_path / "golden"))
    topics = ["orders", "payments", "users", "audit"]
    with kafka_broker() as theirs, tailrace.Broker(tmp_path / "ours") as ours:
        for task in plan_replay(path, theirs.bootstrap, topics=topics, create=True):
            replay_partition(task)
        assert is_equal(path, theirs.bootstrap, topics=topics, ignore=["offsets"])
        with ClusterClient(theirs.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name="packed", partitions=1, replication_factor=1))
        for codec in Codec:
            put(theirs.bootstrap, "packed", 0, numbered(50), codec=codec)
        topics.append("packed")
        done = [
            replay_partition(task) for task in plan_replay(theirs.bootstrap, ours.bootstrap, topics=topics, create=True)
        ]
        assert next(one for one in done if one.partition.topic == "packed").batches_decoded == 0
        assert is_equal(theirs.bootstrap, ours.data, topics=topics)
