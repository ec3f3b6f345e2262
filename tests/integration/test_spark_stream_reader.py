"""The stream reader as Spark drives it, without Spark: offsets from batch to batch, restarts, limits, losses."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

import tailrace
from tailrace.client.admin import NewTopic, add_partitions, create_topic, delete_records, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.model.ids import TopicPartition
from tailrace.spark.source.data_source import LogDataSource
from tailrace.spark.source.errors import OffsetRangeLost
from tests.support.filled_topics import numbered, put
from tests.support.spark_types import default_struct

EVERYTHING = ReadAllAvailable()
IMPATIENT = {"kafka.default.api.timeout.ms": "1500", "kafka.fetch.max.wait.ms": "50"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture(params=["wire", "files"])
def source(request: pytest.FixtureRequest, broker: tailrace.Broker) -> dict[str, str]:
    """Return the source of a stream. The same tests run for both sources."""
    if request.param == "files":
        return {"path": broker.data, "startingOffsets": "earliest"}
    return {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest", **IMPATIENT}


def reader(options: dict[str, str], **more: str) -> Any:
    chosen = {"subscribe": "t", **options, **more}
    if "subscribePattern" in chosen or "assign" in chosen:
        del chosen["subscribe"]
    return LogDataSource(chosen).streamReader(default_struct())


def taken(stream: Any, start: dict, end: dict) -> list[tuple[int, int]]:
    """Return (partition, offset) of a batch, read from pickled copies as in tasks."""
    found = []
    worker = pickle.loads(pickle.dumps(stream))
    for task in pickle.loads(pickle.dumps(stream.partitions(start, end))):
        for batch in worker.read(task):
            columns = batch.to_pydict()
            found += zip(columns["partition"], columns["offset"], strict=True)
    return sorted(found)


def span(partition: int, start: int, end: int) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(start, end)]


def test_micro_batches_are_consecutive(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(12))
    stream = reader(source)
    start = stream.initialOffset()
    assert start == {"t": {"0": 0}}
    middle = stream.latestOffset(start, EVERYTHING)
    assert taken(stream, start, middle) == span(0, 0, 12)
    assert stream.latestOffset(middle, EVERYTHING) == middle
    assert stream.partitions(middle, middle) == []
    put(broker.bootstrap, "t", 0, numbered(3, 12))
    end = stream.latestOffset(middle, EVERYTHING)
    assert taken(stream, middle, end) == span(0, 12, 15)
    assert stream.reportLatestOffset() == {"t": {"0": 15}}
    stream.stop()


def test_a_stream_starts_at_the_latest_offset_by_default(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(12))
    del source["startingOffsets"]
    assert reader(source).initialOffset() == {"t": {"0": 12}}


def test_a_batch_is_the_same_after_a_restart(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    start, end = {"t": {"0": 4}}, {"t": {"0": 11}}
    checkpoint = json.dumps([start, end])
    first = taken(reader(source), start, end)
    put(broker.bootstrap, "t", 0, numbered(20, 20))
    assert first == taken(reader(source), *json.loads(checkpoint)) == span(0, 4, 11)


def test_max_offsets_per_trigger_limits_a_batch(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(25))
    stream = reader(source, maxOffsetsPerTrigger="10")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    ends, offset = [], stream.initialOffset()
    for _ in range(4):
        offset = stream.latestOffset(offset, limit)
        ends.append(offset["t"]["0"])
    assert ends == [10, 20, 25, 25]
    assert stream.latestOffset({"t": {"0": 0}}, EVERYTHING) == {"t": {"0": 25}}


def test_min_offsets_per_trigger_delays_a_batch(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    stream = reader(source, minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMinRows(10)
    first = stream.latestOffset(stream.initialOffset(), limit)
    assert first == {"t": {"0": 5}}  # the first batch is not delayed
    put(broker.bootstrap, "t", 0, numbered(9, 5))
    assert stream.latestOffset(first, limit) == first
    put(broker.bootstrap, "t", 0, numbered(1, 14))
    assert stream.latestOffset(first, limit) == {"t": {"0": 15}}
    hasty = reader(source, minOffsetsPerTrigger="10", maxTriggerDelay="1ms")
    assert hasty.latestOffset(first, limit) == {"t": {"0": 15}}


def test_available_now_ends_at_the_end_offsets_of_its_start(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(25))
    stream = reader(source, maxOffsetsPerTrigger="10", minOffsetsPerTrigger="8")
    offset = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    put(broker.bootstrap, "t", 0, numbered(25, 25))
    seen = []
    while True:
        end = stream.latestOffset(offset, stream.getDefaultReadLimit())
        if end == offset:
            break
        seen += taken(stream, offset, end)
        offset = end
    assert seen == span(0, 0, 25)
    ahead = {"t": {"0": 30}}  # a restart from a later checkpoint
    assert stream.latestOffset(ahead, EVERYTHING) == ahead


def test_a_new_partition_is_read_from_its_beginning(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    stream = reader(source)
    start = stream.latestOffset(stream.initialOffset(), EVERYTHING)
    with ClusterClient(broker.bootstrap) as cluster:
        add_partitions(cluster, "t", 2)
    put(broker.bootstrap, "t", 1, numbered(4))
    put(broker.bootstrap, "t", 0, numbered(2, 5))
    end = stream.latestOffset(start, EVERYTHING)
    assert end == {"t": {"0": 7, "1": 4}}
    assert taken(stream, start, end) == [*span(0, 5, 7), *span(1, 0, 4)]
    assert taken(reader(source), start, end) == [*span(0, 5, 7), *span(1, 0, 4)]


def test_a_new_topic_of_the_pattern_is_found(broker: tailrace.Broker, source: dict[str, str]) -> None:
    broker.create_topic("orders.eu")
    stream = reader(source, subscribePattern=r"orders\..*")
    start = stream.initialOffset()
    assert start == {"orders.eu": {"0": 0}}
    with ClusterClient(broker.bootstrap) as cluster:
        create_topic(cluster, NewTopic(name="orders.us", partitions=1))
    put(broker.bootstrap, "orders.us", 0, numbered(3))
    end = stream.latestOffset(start, EVERYTHING)
    assert end == {"orders.eu": {"0": 0}, "orders.us": {"0": 3}}
    assert taken(stream, start, end) == span(0, 0, 3)


def test_retention_that_overtakes_the_stream_is_data_loss(broker: tailrace.Broker) -> None:
    source = {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest", **IMPATIENT}
    put(broker.bootstrap, "t", 0, numbered(20))
    start, end = {"t": {"0": 2}}, {"t": {"0": 20}}
    with ClusterClient(broker.bootstrap) as cluster:
        delete_records(cluster, {TopicPartition("t", 0): 9})
    with pytest.raises(OffsetRangeLost, match="offsets 2 to 8 of t-0 are missing: the log starts at 9"):
        reader(source).partitions(start, end)
    assert taken(reader(source, failOnDataLoss="false"), start, end) == span(0, 9, 20)


def test_a_deleted_topic_is_data_loss_or_skipped(broker: tailrace.Broker, source: dict[str, str]) -> None:
    broker.create_topic("u")
    put(broker.bootstrap, "t", 0, numbered(5))
    put(broker.bootstrap, "u", 0, numbered(5))
    strict = reader(source, subscribe="t,u")
    start = strict.latestOffset(strict.initialOffset(), EVERYTHING)
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "u")
    put(broker.bootstrap, "t", 0, numbered(2, 5))
    with pytest.raises(OffsetRangeLost, match="of u-0 are missing: the partition was deleted"):
        strict.latestOffset(start, EVERYTHING)
    with pytest.raises(OffsetRangeLost, match="offsets 5 to 8 of u-0 are missing: the partition was deleted"):
        strict.partitions(start, {"t": {"0": 7}, "u": {"0": 9}})
    lenient = reader(source, subscribe="t,u", failOnDataLoss="false")
    end = lenient.latestOffset(start, EVERYTHING)
    assert end == {"t": {"0": 7}}
    assert taken(lenient, start, end) == span(0, 5, 7)
    assert taken(lenient, start, {"t": {"0": 7}, "u": {"0": 9}}) == span(0, 5, 7)


def test_a_recreated_topic_is_data_loss(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(9))
    stream = reader(source)
    start = stream.latestOffset(stream.initialOffset(), EVERYTHING)
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "t")
        create_topic(cluster, NewTopic(name="t", partitions=1))
    put(broker.bootstrap, "t", 0, numbered(4))
    with pytest.raises(OffsetRangeLost, match="offsets 4 to 8 of t-0 are missing: the log now ends at 4"):
        stream.latestOffset(start, EVERYTHING)
    assert reader(source, failOnDataLoss="false").latestOffset(start, EVERYTHING) == {"t": {"0": 4}}


def test_a_segment_deleted_between_planning_and_reading_is_data_loss(broker: tailrace.Broker, tmp_path: Path) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    copy = shutil.copytree(broker.data, tmp_path / "copy")
    stream = reader({"path": str(copy), "startingOffsets": "earliest"})
    tasks = stream.partitions({"t": {"0": 0}}, {"t": {"0": 5}})
    shutil.rmtree(copy / "t-0")
    with pytest.raises(OffsetRangeLost, match="offsets 0 to 4 of t-0 are missing"):
        list(stream.read(tasks[0]))


def test_starting_timestamps_apply_to_streams(broker: tailrace.Broker, source: dict[str, str]) -> None:
    put(broker.bootstrap, "t", 0, numbered(10), timestamp=1_700_000_000_000)
    assert reader(source, startingTimestamp="1700000000004").initialOffset() == {"t": {"0": 4}}
