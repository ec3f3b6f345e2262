"""The source reads old records from the folder into which Apache Kafka copied them, and the others from the broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tailrace.spark.source.errors import UnknownLog
from tailrace.spark.source.options import read_options
from tailrace.spark.source.slice_reader import ReadPlan
from tailrace.spark.source.stream_reader import LogStreamReader
from tailrace.spark.source.transports.tier_transport import TierSlice
from tests.support.command import tailrace
from tests.support.kafka_broker import KafkaBroker
from tests.support.local_tiered_storage import CLASS, tiered_storage_jar
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.source_rows import offsets, plan, read, read_slices

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
TOPIC = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "3000",
    "local.retention.bytes": "1",
    "retention.ms": "-1",
    "index.interval.bytes": "300",
}


def tiered_properties(tier: Path) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": CLASS,
        "remote.log.storage.manager.class.path": str(tiered_storage_jar()),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rsm.config.dir": str(tier),
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
        "remote.log.manager.task.interval.ms": "300",
        "log.retention.check.interval.ms": "300",
        "log.initial.task.delay.ms": "300",
    }


@pytest.fixture
def tiered(kafka_broker: Callable[..., KafkaBroker], tmp_path: Path) -> KafkaBroker:
    broker = kafka_broker(properties=tiered_properties(tmp_path / "tier"))
    broker.start()
    return broker


def records(first: int, count: int) -> list[OracleRecord]:
    return [OracleRecord(key=b"%d" % one, value=b"v" * 100, timestamp=one) for one in range(first, first + count)]


def wait_until_tiered(folder: Path) -> None:
    """Wait until the local log has one segment, because the others are in the tier."""
    wait_until(lambda: len(list(folder.glob("*.log"))) == 1)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def fill(broker: KafkaBroker, oracle: LogOracle) -> None:
    """Write committed, aborted and plain records; the last transaction is aborted after the last sealed segment."""
    with oracle.connect(broker.bootstrap) as client:
        client.create_topic("orders", config=TOPIC)
        for part in range(12):
            client.produce("orders", 0, records(part * 10, 10))
            end: Literal["commit", "abort"] = "commit" if part % 2 == 0 else "abort"
            client.transaction("first", "orders", 0, records(1000 + part * 10, 5), end=end)
        aborted = (records(5000 + part * 10, 10) for part in range(8))
        client.transaction("last", "orders", 0, *aborted, end="abort")


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_those_of_the_cluster_alone(
    tiered: KafkaBroker, log_oracle: LogOracle, tmp_path: Path, isolation: str
) -> None:
    fill(tiered, log_oracle)
    wait_until_tiered(tiered.data / "orders-0")
    wire = {
        "kafka.bootstrap.servers": tiered.bootstrap,
        "subscribe": "orders",
        "kafka.isolation.level": isolation,
    }
    both = {**wire, "remote.path": str(tmp_path / "tier"), "minPartitions": "6"}
    expected = read(wire)
    found = read(both)
    assert sorted(offsets(found)) == offsets(expected)
    assert sorted(found, key=lambda row: row["OFFSET"]) == expected
    slices = plan(both)
    cold = [one for one in slices if isinstance(one, TierSlice)]
    assert len(cold) > 2
    assert len(slices) - len(cold) > 0
    assert sum(one.range.size for one in cold) > 0.7 * sum(one.range.size for one in slices)
    (tier,) = (tmp_path / "tier" / "kafka-tiered-storage").glob("orders-0-*")
    if isolation == "read_uncommitted":
        shown = tailrace("log", "verify", tier, "--deep")
        assert "no problems" in shown.out, shown.out


def test_segments_that_are_deleted_during_a_query_are_read_from_the_cluster(
    tiered: KafkaBroker, log_oracle: LogOracle, tmp_path: Path
) -> None:
    with log_oracle.connect(tiered.bootstrap) as client:
        client.create_topic("orders", config={**TOPIC, "local.retention.bytes": "1000000000"})
        for part in range(20):
            client.produce("orders", 0, records(part * 10, 10))
    wire = {"kafka.bootstrap.servers": tiered.bootstrap, "subscribe": "orders"}
    both = {**wire, "remote.path": str(tmp_path / "tier")}
    wait_until(lambda: sum(isinstance(one, TierSlice) for one in plan({**both, "minPartitions": "4"})) > 3)
    slices = plan({**both, "minPartitions": "4"})
    for path in sorted((tmp_path / "tier").rglob("*.log"))[1:]:
        path.unlink()
    assert sorted(offsets(read_slices(slices))) == list(range(200))


def test_a_stream_reads_from_both_tiers(tiered: KafkaBroker, log_oracle: LogOracle, tmp_path: Path) -> None:
    with log_oracle.connect(tiered.bootstrap) as client:
        client.create_topic("orders", config=TOPIC)
        for part in range(20):
            client.produce("orders", 0, records(part * 10, 10))
        wait_until_tiered(tiered.data / "orders-0")
        given = {
            "kafka.bootstrap.servers": tiered.bootstrap,
            "subscribe": "orders",
            "remote.path": str(tmp_path / "tier"),
            "startingOffsets": "earliest",
        }
        options = read_options(given, is_stream=True)
        reader = LogStreamReader(options, ReadPlan((), ()))
        start = reader.initialOffset()
        assert start == {"orders": {"0": 0}}
        middle = reader.latestOffset(start, reader.getDefaultReadLimit())
        first = [one.slice for one in reader.partitions(start, middle)]
        assert any(isinstance(one, TierSlice) for one in first)
        client.produce("orders", 0, records(200, 10))
        end = reader.latestOffset(middle, reader.getDefaultReadLimit())
        second = [one.slice for one in reader.partitions(middle, end)]
        assert not any(isinstance(one, TierSlice) for one in second)
        reader.stop()
    assert sorted(offsets(read_slices([*first, *second]))) == list(range(210))


def test_a_cluster_without_tiered_topics_is_named_in_the_error(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle, tmp_path: Path
) -> None:
    broker = kafka_broker()
    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        client.create_topic("orders")
        client.produce("orders", 0, records(0, 10))
    with pytest.raises(UnknownLog, match="no topic __remote_log_metadata, so no topic is tiered"):
        read({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "orders", "remote.path": str(tmp_path)})
