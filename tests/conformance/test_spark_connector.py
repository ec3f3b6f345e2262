"""Spark's own Kafka connector at Apache Kafka and at Tailrace: batch and structured streaming, reading and writing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.confluent import create_topic
from tests.support.foreign_clients import SOURCES, maven_jars, python_with

pytestmark = pytest.mark.slow  # it starts Spark twice

SPARK = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}"
ROWS = 300
MORE = 60
PARTITIONS = 3


def test_sparks_connector_reads_and_writes_batches_and_streams(bootstrap: str, topic: str, tmp_path: Path) -> None:
    jars = ",".join(map(str, maven_jars(CONNECTOR)))
    spark = python_with(f"pyspark=={SPARK}").with_environment(SPARK_LOCAL_IP="127.0.0.1")
    copy = f"{topic}-copy"
    create_topic(bootstrap, topic, PARTITIONS)
    create_topic(bootstrap, copy, 2)
    script = str(SOURCES / "spark" / "connector.py")
    reported = json.loads(spark(script, bootstrap, topic, copy, jars, str(tmp_path / "checkpoint"), timeout_s=400))

    found = {(partition, offset): (key, value) for partition, offset, key, value in reported["records"]}
    assert found.keys() == {(number % PARTITIONS, number // PARTITIONS) for number in range(ROWS)}
    rows = {(f"key-{number}", f"value {number}") for number in range(ROWS)}
    assert set(found.values()) == rows
    for (partition, _), (key, _) in found.items():
        assert int(key.removeprefix("key-")) % PARTITIONS == partition
    assert reported["headers"] == list(range(ROWS))

    assert reported["part"] == [[0, offset] for offset in range(10, 20)] + [[1, offset] for offset in range(5)]
    assert reported["later"] == []
    assert reported["splits"] == 6

    assert (reported["first copy"], reported["third copy"]) == (1, 0)
    assert reported["second copy"] >= MORE / 20
    assert reported["copied"] == sorted(f"VALUE {number}" for number in range(ROWS + MORE))
