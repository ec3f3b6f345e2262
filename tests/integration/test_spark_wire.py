"""The Spark source over the network, without Spark: ranges, rows and errors with a broker in this process.

Most tests cover problems that reviewers found in other Python sources for Kafka.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.admin import add_partitions, delete_records, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tailrace.spark.source.errors import DamagedLog, OffsetRangeLost, UnknownLog, Unreadable, WrongOption
from tailrace.spark.source.planning.pruning import Condition
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden
from tests.support.source_rows import offsets, plan, read, read_slices

T0 = TopicPartition("t", 0)
START_MS = 1_700_000_000_000
IMPATIENT = {"kafka.default.api.timeout.ms": "1500", "kafka.fetch.max.wait.ms": "50"}


@pytest.fixture
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker() as broker:
        broker.create_topic("t")
        yield broker


def wire(broker: tailrace.Broker, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t", **IMPATIENT, **more}


def values(found: list[dict[str, Any]]) -> list[bytes]:
    return [row["VALUE"] for row in found]


@pytest.mark.parametrize("codec", Codec)
def test_fetched_rows_equal_the_written_records(broker: tailrace.Broker, codec: Codec) -> None:
    put(broker.bootstrap, "t", 0, [*numbered(40), (b"gone", None), (None, b"")], codec=codec)
    found = read(wire(broker))
    assert values(found) == [*[value for _, value in numbered(40)], None, b""]  # type: ignore[misc]
    assert [row["KEY"] for row in found[-2:]] == [b"gone", None]
    assert offsets(found) == list(range(42))


def test_a_range_is_read_with_many_fetch_responses(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(300), per_batch=3)
    found = read({**wire(broker), "kafka.max.partition.fetch.bytes": "200"})
    assert offsets(found) == list(range(300))


def test_records_outside_the_range_are_dropped(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(30), per_batch=10)
    chosen = wire(broker, startingOffsets='{"t":{"0":7}}', endingOffsets='{"t":{"0":23}}')
    assert offsets(read(chosen)) == list(range(7, 23))


def test_parts_of_a_partition_give_each_record_once(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(100), per_batch=7)
    slices = plan(wire(broker, minPartitions="6"))
    assert len(slices) == 6
    assert offsets(read_slices(slices)) == list(range(100))
    assert len(plan(wire(broker, maxRecordsPerPartition="30"))) == 4


def test_a_planned_range_ends_at_its_end_while_the_log_grows(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(10))
    slices = plan(wire(broker))
    put(broker.bootstrap, "t", 0, numbered(10, 10))
    assert offsets(read_slices(slices)) == list(range(10))


def test_a_read_waits_for_the_planned_end_of_its_range(
    broker: tailrace.Broker,
) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    (slice_,) = plan(wire(broker))
    with tailrace.Broker() as other:  # these offsets are written only while the task reads
        other.create_topic("t")
        put(other.bootstrap, "t", 0, numbered(10))
        from dataclasses import replace

        there = replace(slice_, wire=replace(slice_.wire, bootstrap=other.bootstrap))
        late = threading.Timer(0.4, put, (other.bootstrap, "t", 0, numbered(10, 10)))
        late.start()
        assert offsets(read_slices([there])) == list(range(20))
        late.join()


def test_a_log_that_does_not_reach_the_planned_end_is_data_loss(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    (slice_,) = plan(wire(broker))
    with tailrace.Broker() as other:
        from dataclasses import replace

        other.create_topic("t")
        put(other.bootstrap, "t", 0, numbered(12))
        there = replace(slice_, wire=replace(slice_.wire, bootstrap=other.bootstrap))
        with pytest.raises(OffsetRangeLost, match="offsets 12 to 19 of t-0 are missing: the log can be read up to 12"):
            read_slices([there])
        assert offsets(read_slices([there], fail_on_data_loss=False)) == list(range(12))


def test_an_ending_offset_after_the_log_end_is_refused_at_once(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(10))
    chosen = wire(broker, endingOffsets='{"t":{"0":15}}')
    before = time.monotonic()
    with pytest.raises(OffsetRangeLost, match="offsets 10 to 14 of t-0 are missing: the log ends at 10"):
        read(chosen)
    assert time.monotonic() - before < 1
    assert len(read({**chosen, "failOnDataLoss": "false"})) == 10


def test_records_deleted_before_planning_are_data_loss(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_records(cluster, {T0: 8})
    assert offsets(read(wire(broker))) == list(range(8, 20))
    chosen = wire(broker, startingOffsets='{"t":{"0":3}}')
    with pytest.raises(OffsetRangeLost, match="offsets 3 to 7 of t-0 are missing: the log starts at 8"):
        read(chosen)
    assert offsets(read({**chosen, "failOnDataLoss": "false"})) == list(range(8, 20))


def test_records_deleted_after_planning_are_data_loss(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(20))
    slices = plan(wire(broker))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_records(cluster, {T0: 8})
    with pytest.raises(OffsetRangeLost, match="offsets 0 to 7 of t-0 are missing: the log starts at 8"):
        read_slices(slices)
    assert offsets(read_slices(slices, fail_on_data_loss=False)) == list(range(8, 20))


def test_a_topic_deleted_after_planning_is_data_loss(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(5))
    slices = plan(wire(broker))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "t")
    with pytest.raises(OffsetRangeLost, match="offsets 0 to 4 of t-0 are missing: the topic was deleted"):
        read_slices(slices)
    assert read_slices(slices, fail_on_data_loss=False) == []


def test_offsets_must_contain_exactly_the_selected_partitions(broker: tailrace.Broker) -> None:
    with ClusterClient(broker.bootstrap) as cluster:
        add_partitions(cluster, "t", 2)
    with pytest.raises(WrongOption, match="startingOffsets has no offset for t-1"):
        read(wire(broker, startingOffsets='{"t":{"0":0}}'))
    with pytest.raises(UnknownLog, match="startingOffsets has t-5"):
        read(wire(broker, startingOffsets='{"t":{"0":0,"1":0,"5":0}}'))
    with pytest.raises(UnknownLog, match="has other-0"):
        read(wire(broker, startingOffsets='{"t":{"0":0,"1":0},"other":{"0":3}}'))
    with pytest.raises(WrongOption, match="endingOffsetsByTimestamp has no offset for t-1"):
        read(wire(broker, endingOffsetsByTimestamp='{"t":{"0":5}}'))


def test_starting_and_ending_times_are_resolved_to_offsets(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(30))
    chosen = wire(broker, startingTimestamp=str(START_MS + 10), endingTimestamp=str(START_MS + 20))
    assert offsets(read(chosen)) == list(range(10, 20))
    assert offsets(read(wire(broker, endingTimestamp=str(START_MS + 9999)))) == list(range(30))
    with pytest.raises(WrongOption, match=r"no record of t-0 is at or after \d+ ms"):
        read(wire(broker, startingTimestamp=str(START_MS + 9999)))
    late = wire(broker, startingTimestamp=str(START_MS + 9999), startingOffsetsByTimestampStrategy="latest")
    assert read(late) == []


def test_conditions_narrow_the_fetched_range(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(100))
    (slice_,) = plan(wire(broker), [Condition("offset", ">=", 40), Condition("offset", "<", 44)])
    assert slice_.range == (T0, 40, 44)
    assert plan(wire(broker), [Condition("partition", "=", 3)]) == []


def test_a_pattern_finds_topics_that_are_not_internal(broker: tailrace.Broker) -> None:
    for name in ("orders.eu", "orders.us", "other"):
        broker.create_topic(name)
        put(broker.bootstrap, name, 0, numbered(3))
    chosen = {name: value for name, value in wire(broker).items() if name != "subscribe"}
    found = read({**chosen, "subscribePattern": r"orders\..*"})
    assert {row["TOPIC"] for row in found} == {"orders.eu", "orders.us"}
    assert len(read({**chosen, "assign": '{"orders.eu":[0],"other":[0]}'})) == 6


def test_an_empty_topic_has_no_rows(broker: tailrace.Broker) -> None:
    assert read(wire(broker)) == []


def test_read_committed_skips_aborted_records(tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path)
    manifest = golden("broker-clean").manifest
    with tailrace.Broker(path) as broker:
        for expected in manifest["partitions"]:
            chosen = {
                "kafka.bootstrap.servers": broker.bootstrap,
                "assign": f'{{"{expected["topic"]}":[{expected["partition"]}]}}',
                **IMPATIENT,
            }
            assert offsets(read(chosen)) == [record[0] for record in expected["records"]]
            for size in ("1048576", "100"):
                committed = {
                    **chosen, "kafka.isolation.level": "read_committed", "kafka.max.partition.fetch.bytes": size
                }  # fmt: skip
                assert offsets(read(committed)) == expected["committed"]


def test_files_are_read_up_to_the_offsets_of_the_cluster(tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t")
        put(broker.bootstrap, "t", 0, numbered(50))
        with ClusterClient(broker.bootstrap) as cluster:
            delete_records(cluster, {T0: 10})
        chosen = {**wire(broker), "path": str(tmp_path / "data")}
        (slice_,) = plan(chosen)
        assert slice_.range == (T0, 10, 50)
        assert type(slice_).__name__ == "SegmentSlice"
        assert offsets(read(chosen)) == list(range(10, 50))
        # Without the cluster, the files of the running broker have nearly the same offsets.
        alone = {"path": str(tmp_path / "data"), "subscribe": "t"}
        assert offsets(read(alone))[-1] == 49


def test_an_unreachable_cluster_is_reported_in_one_sentence() -> None:
    chosen = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **IMPATIENT}
    with pytest.raises(Unreadable, match=r"the cluster at 127.0.0.1:1 cannot be queried: no broker can be reached"):
        read(chosen)


def test_a_broker_lost_during_a_read_is_reported_in_one_sentence(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(50))
    slices = plan(wire(broker))
    broker.crash()
    with pytest.raises(Unreadable, match="t-0 cannot be read from offset 0 on: no broker can be reached"):
        read_slices(slices)


def test_a_lost_connection_is_replaced_during_a_read(broker: tailrace.Broker) -> None:
    put(broker.bootstrap, "t", 0, numbered(50))
    slices = plan(wire(broker))
    broker.drop("Fetch", times=2)
    assert offsets(read_slices(slices)) == list(range(50))


def test_an_unknown_topic_or_partition_is_reported(broker: tailrace.Broker) -> None:
    with pytest.raises(UnknownLog, match=f"there is no topic 'nope' at {broker.bootstrap}"):
        read(wire(broker, subscribe="nope"))
    assigned = {**wire(broker), "assign": '{"t":[4]}'}
    del assigned["subscribe"]
    with pytest.raises(UnknownLog, match="option assign names t-4, which does not exist"):
        read(assigned)


def test_a_damaged_batch_is_reported_with_its_offset(tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path) as broker:
        broker.create_topic("t")
        put(broker.bootstrap, "t", 0, numbered(20))
        slices = plan(wire(broker))
        (segment,) = (tmp_path / "t-0").glob("*.log")
        data = bytearray(segment.read_bytes())
        data[-1] ^= 1
        with segment.open("r+b") as file:
            file.write(data)
        with pytest.raises(DamagedLog, match=r"t-0 is damaged at offset 15 or after it \(byte \d+ of a Fetch response"):
            read_slices(slices)
