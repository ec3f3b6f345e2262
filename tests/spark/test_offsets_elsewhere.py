"""Offsets move between consumer groups and checkpoints: of this source, and of Spark's own Kafka connector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tests.support.command import tailrace as command
from tests.support.filled_topics import numbered, put


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(5))
        put(broker.bootstrap, "t", 1, numbered(3))
        yield broker


def run_once(spark: Any, broker: tailrace.Broker, folder: Path, kind: str, **options: str) -> Any:
    """Run a stream up to the end of the topic, and return its rows so far."""
    stream = (
        spark.readStream.format(kind)
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", "t")
        .options(**options)
        .load()
    )
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(folder / "rows")).select("partition", "offset").collect()
    return sorted((row.partition, row.offset) for row in rows)


def check_conversion(spark: Any, broker: tailrace.Broker, tmp_path: Path, kind: str) -> None:
    """Move a stream to a group and back: the next query reads the records after the committed batch, and no others."""
    first = run_once(spark, broker, tmp_path / "first", kind, startingOffsets="earliest")
    assert len(first) == 8
    put(broker.bootstrap, "t", 0, numbered(2))
    location = tmp_path / "first" / "checkpoint"
    shown = command("offsets", "of-checkpoint", location, "--json").json
    assert (shown["committedBatch"], shown["plannedBatch"]) == (0, None)
    assert [one["committed"] for one in shown["sources"][0]["partitions"]] == [5, 3]
    (location / "commits" / "0").rename(location / "zero")  # as if Spark had died in batch 0
    shown = command("offsets", "of-checkpoint", location, "--json").json
    assert (shown["committedBatch"], shown["plannedBatch"]) == (None, 0)
    (location / "zero").rename(location / "commits" / "0")

    to_group = ("offsets", "of-checkpoint", location, "--to-group", "moved", "-b", broker.bootstrap)
    assert "dry run" in command(*to_group).out
    assert "t" not in command("groups", "describe", "moved", "-b", broker.bootstrap).out.split()
    assert command(*to_group, "--yes").status == 0
    by_group = run_once(spark, broker, tmp_path / "second", "tailrace", startingOffsets="group:moved")
    assert by_group == [(0, 5), (0, 6)]
    starting = command("offsets", "of-checkpoint", location, "--starting-offsets").out.strip()
    assert json.loads(starting) == {"t": {"0": 5, "1": 3}}
    assert run_once(spark, broker, tmp_path / "third", kind, startingOffsets=starting) == by_group
    batch = (
        spark.read.format("tailrace")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .options(subscribe="t", startingOffsets="group:moved")
        .load()
    )
    assert sorted((row.partition, row.offset) for row in batch.collect()) == by_group


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_checkpoint_of_this_source_becomes_a_group_and_starting_offsets(
    spark: Any, broker: tailrace.Broker, tmp_path: Path, version: str
) -> None:
    spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", version)
    try:
        check_conversion(spark, broker, tmp_path, "tailrace")
    finally:
        spark.conf.unset("spark.sql.streaming.offsetLog.formatVersion")


def test_a_checkpoint_of_the_kafka_connector_becomes_a_group_and_starting_offsets(
    connector: Any, broker: tailrace.Broker, tmp_path: Path
) -> None:
    check_conversion(connector, broker, tmp_path, "kafka")


def test_a_stream_resumes_from_its_checkpoint_and_not_from_the_group(
    spark: Any, broker: tailrace.Broker, tmp_path: Path
) -> None:
    rule = {"startingOffsets": "group:none", "startingOffsetsWithoutCommit": "latest"}
    assert run_once(spark, broker, tmp_path, "tailrace", **{**rule, "startingOffsetsWithoutCommit": "earliest"})
    put(broker.bootstrap, "t", 1, numbered(1))
    assert len(run_once(spark, broker, tmp_path, "tailrace", **rule)) == 9
