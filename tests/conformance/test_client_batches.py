"""Batches of a real cluster: the client reads those of the Java client, and the Java client reads its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import tailrace
from tailrace.client.admin import NewTopic, create_topic, delete_records
from tailrace.client.batches import FetchOptions, fetch, fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ConnectionLost, OffsetOutOfRange, Refused
from tailrace.client.offsets import latest_offsets
from tailrace.client.producing.partitioner import partition_of_key
from tailrace.client.producing.producer import Acks, BatchProducer, NotDelivered
from tailrace.client.visible_batches import Batch, IsolationLevel
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import Record, iter_records
from tests.support.batches import batch
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord
from tests.support.tailrace_process import TailraceProcess

NOW_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}  # records have the timestamp NOW_MS
SMALL = FetchOptions(partition_max_bytes=300, max_bytes=300, max_wait_ms=50)


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[ClusterClient]:
    with ClusterClient(bootstrap) as cluster:
        yield cluster


@pytest.fixture
def partition(cluster: ClusterClient, topic: str) -> TopicPartition:
    create_topic(cluster, NewTopic(name=topic, partitions=1, config=KEPT))
    return TopicPartition(topic, 0)


def record(number: int) -> OracleRecord:
    return OracleRecord(
        key=None if number % 5 == 4 else b"key-%d" % number,
        value=None if number % 7 == 6 else b"value-%d" % number * 5,
        timestamp=NOW_MS + number,
        headers=((b"number", b"%d" % number), (b"none", None)) if number % 3 == 0 else (),
    )


def plain(found: Record | OracleRecord) -> tuple[object, ...]:
    headers = [(key if isinstance(key, str) else key.decode(), value) for key, value in found.headers]
    return found.offset, found.timestamp, found.key, found.value, headers


def records_of(batches: Iterable[Batch], start: int = 0) -> list[tuple[object, ...]]:
    found: list[Record] = []
    for one in batches:
        assert isinstance(one, RecordBatch)
        found += iter_records(one)
    return [plain(one) for one in found if one.offset >= start]


@pytest.mark.kafka
@pytest.mark.parametrize("options", [FetchOptions(), SMALL], ids=["large", "small"])
def test_the_client_reads_batches_of_the_java_producer(
    cluster: ClusterClient, bootstrap: str, partition: TopicPartition, log_oracle: LogOracle, options: FetchOptions
) -> None:
    with log_oracle.connect(bootstrap) as java:
        for number, codec in enumerate(Codec):
            groups = [[record(n) for n in range(number * 20 + first, number * 20 + first + 10)] for first in (0, 10)]
            java.produce(*partition, *groups, config={"compression.type": codec.name.lower()})
        expected = [plain(one) for one in java.consume(*partition)]
    end = latest_offsets(cluster, [partition])[partition]
    assert len(expected) == end == 100
    for start in (0, 1, 19, 55, 99):
        found = fetch_range(cluster, partition, start, end, options)
        assert records_of(found, start) == expected[start:]


@pytest.mark.kafka
def test_the_java_consumer_reads_batches_of_the_client(
    cluster: ClusterClient, bootstrap: str, partition: TopicPartition, log_oracle: LogOracle
) -> None:
    producers = [
        BatchProducer(cluster),
        BatchProducer(cluster, idempotent=False),
        BatchProducer(cluster, acks=Acks.LEADER),
    ]
    written: list[tuple[object, ...]] = []
    for number in range(30):
        builder = BatchBuilder(codec=list(Codec)[number % 5])
        for one in map(record, range(number * 3, number * 3 + 3)):
            headers = [(key.decode(), value) for key, value in one.headers]
            builder.append(one.timestamp, one.key, one.value, headers)
            written.append((len(written), one.timestamp, one.key, one.value, headers))
        (produced,) = producers[number % 3].send({partition: builder.build()}).values()
        assert produced.base_offset == number * 3
    with log_oracle.connect(bootstrap) as java:
        assert [plain(one) for one in java.consume(*partition)] == written
        assert [plain(one) for one in java.consume(*partition, isolation="read_committed")] == written


def test_acks_0_arrive_in_order_with_the_rest(cluster: ClusterClient, partition: TopicPartition) -> None:
    careless = BatchProducer(cluster, acks=Acks.NONE)
    for number in range(10):
        careless.send({partition: batch(b"%d" % number)})
    # The broker responds to the requests of one connection in order.
    assert BatchProducer(cluster).send({partition: batch(b"10")})[partition].base_offset == 10
    values = [value for _, _, _, value, _ in records_of(fetch_range(cluster, partition, 0, 11))]
    assert values == [b"%d" % number for number in range(11)]


def test_a_repeated_batch_is_written_once(cluster: ClusterClient, partition: TopicPartition) -> None:
    producer = BatchProducer(cluster)
    producer.send({partition: batch(b"a", b"b")})
    assert producer.send({partition: batch(b"c")})[partition].base_offset == 2
    producer._sequences[partition] = 2  # simulate a lost response
    assert producer.send({partition: batch(b"c")})[partition].base_offset == 2
    assert producer.send({partition: batch(b"d")})[partition].base_offset == 3
    producer._sequences[partition] = 17  # simulate a skipped sequence
    with pytest.raises(NotDelivered, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        producer.send({partition: batch(b"e")})
    assert producer.send({partition: batch(b"f")})[partition].base_offset == 4


def test_a_refused_batch_is_reported_and_the_others_are_delivered(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic, partitions=2, config={"max.message.bytes": "200", **KEPT}))
    first, second = cluster.topic(topic).topic_partitions
    with pytest.raises(NotDelivered) as raised:
        BatchProducer(cluster).send({first: batch(b"a"), second: batch(b"b" * 500)})
    refused = raised.value.errors[second]
    assert isinstance(refused, Refused)
    assert refused.code == ErrorCode.MESSAGE_TOO_LARGE
    assert raised.value.delivered[first].base_offset == 0


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic, config={"cleanup.policy": "compact"}))
    with pytest.raises(NotDelivered, match=r"record 1 of the batch: .*INVALID_RECORD"):
        BatchProducer(cluster).send({TopicPartition(topic, 0): batch((b"k", b"a"), b"b")})


@pytest.mark.kafka
def test_transactions_are_visible_as_to_the_java_consumer(
    cluster: ClusterClient, bootstrap: str, partition: TopicPartition, log_oracle: LogOracle
) -> None:
    with log_oracle.connect(bootstrap) as java:
        for number, end in enumerate(["commit", "abort", "abort", "commit", "open"]):
            java.produce(*partition, [record(number * 10)])
            groups = [[record(number * 10 + 1)], [record(number * 10 + 2), record(number * 10 + 3)]]
            java.transaction(f"t{number % 2}", *partition, *groups, end=end)  # type: ignore[arg-type]
        java.produce(*partition, [record(90)])
        end_offset = latest_offsets(cluster, [partition])[partition]
        stable = latest_offsets(cluster, [partition], IsolationLevel.READ_COMMITTED)[partition]
        assert java.bounds(*partition, isolation="read_committed") == (0, stable)
        assert stable < end_offset
        for start in range(0, stable, 3):
            expected = [plain(one) for one in java.consume(*partition, start, isolation="read_committed")]
            for size in (200, 1_000_000):
                options = FetchOptions(isolation=IsolationLevel.READ_COMMITTED, partition_max_bytes=size)
                assert records_of(fetch_range(cluster, partition, start, stable, options), start) == expected
        everything = [plain(one) for one in java.consume(*partition)]
        assert records_of(fetch_range(cluster, partition, 0, end_offset)) == everything


def test_deleted_offsets_are_out_of_range(cluster: ClusterClient, partition: TopicPartition) -> None:
    BatchProducer(cluster).send({partition: batch(*[b"v"] * 10)})
    delete_records(cluster, {partition: 4})
    assert [offset for offset, *_ in records_of(fetch_range(cluster, partition, 4, 10), 4)] == list(range(4, 10))
    with pytest.raises(OffsetOutOfRange, match="offset 3 is out of range"):
        list(fetch_range(cluster, partition, 3, 10))
    with pytest.raises(OffsetOutOfRange):
        fetch(cluster, {partition: 11})


def test_a_fetch_at_the_log_end_waits_and_returns_no_records(cluster: ClusterClient, partition: TopicPartition) -> None:
    found = fetch(cluster, {partition: 0}, FetchOptions(max_wait_ms=50))[partition]
    assert list(found.batches()) == []
    assert (found.high_watermark, found.next_position(0)) == (0, 0)


@pytest.mark.kafka
def test_keys_have_the_partitions_of_the_java_producer(
    cluster: ClusterClient, bootstrap: str, topic: str, kafka: KafkaInstallation
) -> None:
    create_topic(cluster, NewTopic(name=topic, partitions=7))
    keys = ["", *(f"{'kü€𝄞'[number % 4] * (number % 11)}{number}" for number in range(500))]
    options = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=|"]
    kafka.tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", bootstrap, "--topic", topic, *options),
        stdin="".join(f"{key}|v\n" for key in keys),
    )
    partitions = cluster.topic(topic).topic_partitions
    ends = latest_offsets(cluster, partitions)
    placed = {
        bytes(key): number.partition
        for number in partitions
        for _, _, key, _, _ in records_of(fetch_range(cluster, number, 0, ends[number]))
        if isinstance(key, bytes)
    }
    assert placed == {key.encode(): partition_of_key(key.encode(), 7) for key in keys}


def test_requests_succeed_after_a_restart_of_the_broker(tmp_path: Path) -> None:
    """After a clean stop and after a kill, the batches of a producer are in order and without duplicates."""
    ends: list[Callable[[TailraceProcess], object]] = [TailraceProcess.stop, TailraceProcess.kill]
    with TailraceProcess(tmp_path / "data") as broker, ClusterClient(broker.bootstrap) as cluster:
        create_topic(cluster, NewTopic(name="t", config=KEPT))
        here = TopicPartition("t", 0)
        producer = BatchProducer(cluster)
        producer.send({here: batch(b"0")})
        for number, end in enumerate(ends, 1):
            end(broker)
            broker.start()
            assert producer.send({here: batch(b"%d" % number)})[here].base_offset == number
        assert [value for *_, value, _ in records_of(fetch_range(cluster, here, 0, 3))] == [b"0", b"1", b"2"]


def test_lost_responses_do_not_duplicate_batches() -> None:
    """If a request or only its response is lost, the batch of an idempotent producer is written once."""
    with tailrace.Broker() as broker, ClusterClient(broker.bootstrap) as cluster:
        broker.create_topic("t", config=KEPT)
        here = TopicPartition("t", 0)
        producer = BatchProducer(cluster)
        for number, carried_out in enumerate([False, True] * 3):
            broker.drop("Produce", times=1 + number % 2, carried_out=carried_out)
            assert producer.send({here: batch(b"%d" % number)})[here].base_offset == number
        broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
        assert producer.send({here: batch(b"6")})[here].base_offset == 6
        broker.drop("Fetch", times=2)
        found = records_of(fetch_range(cluster, here, 0, 7))
        assert [value for *_, value, _ in found] == [b"%d" % number for number in range(7)]


def test_a_change_with_a_lost_response_is_reported_and_not_retried() -> None:
    with tailrace.Broker() as broker, ClusterClient(broker.bootstrap) as cluster:
        broker.drop("CreateTopics", times=1, carried_out=True)
        with pytest.raises(ConnectionLost, match="during CreateTopics"):
            create_topic(cluster, NewTopic(name="t"))
        assert cluster.topic("t").partitions
