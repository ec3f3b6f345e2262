"""tailrace.Broker: a broker in this process, its stops and its faults."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace
from tailrace.embedded.broker import NotRunning
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from tailrace.records.builder import BatchBuilder
from tests.support import confluent
from tests.support.raw_client import RawClient


@pytest.fixture
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker() as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def client(broker: tailrace.Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as client:
        yield client


def produce_request(*values: bytes) -> ProduceRequest:
    builder = BatchBuilder()
    for value in values:
        builder.append(int(time.time() * 1000), None, value)
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])


def produce(client: RawClient, *values: bytes) -> tuple[int, int]:
    """Return the error code and the base offset."""
    answer = client.ask(produce_request(*values), 9).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def list_offset(client: RawClient, which: int) -> tuple[int, int]:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=which)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7).topics[0].partitions[0]
    return answer.error_code, answer.offset


def end_offset(client: RawClient) -> int:
    return list_offset(client, -1)[1]


def fetch_request() -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic="t", partitions=[partition])
    return FetchRequest(replica_id=-1, max_bytes=1 << 20, min_bytes=0, topics=[topic])


# Start and stop


def test_a_temporary_broker_removes_its_directory() -> None:
    with tailrace.Broker() as broker:
        data = Path(broker.data)
        assert (data / "meta.properties").exists()
        with RawClient(broker.bootstrap) as client:
            nodes = client.ask(MetadataRequest(topics=[]), 12).brokers
            assert [(node.host, node.port) for node in nodes] == [("127.0.0.1", broker.port)]
    assert not data.exists()
    assert not broker.is_running
    with pytest.raises(NotRunning):
        broker.create_topic("late")


def test_a_broker_is_an_async_context_manager() -> None:
    async def use() -> tailrace.Broker:
        async with tailrace.Broker() as broker:
            broker.create_topic("t")
            assert broker.is_running
        return broker

    assert not asyncio.run(use()).is_running


def test_a_given_data_directory_is_kept(tmp_path: Path) -> None:
    for expected in (0, 1):
        with tailrace.Broker(tmp_path / "data") as broker:
            if not expected:
                broker.create_topic("t")
            with RawClient(broker.bootstrap) as client:
                assert produce(client, b"x") == (0, expected)


def test_a_restart_keeps_port_and_records(broker: tailrace.Broker) -> None:
    with RawClient(broker.bootstrap) as client:
        assert produce(client, b"a", b"b") == (0, 0)
    port = broker.port
    broker.restart()
    assert broker.port == port
    with RawClient(broker.bootstrap) as client:
        assert produce(client, b"c") == (0, 2)


def test_acknowledged_records_survive_a_crash(broker: tailrace.Broker) -> None:
    with RawClient(broker.bootstrap) as client:
        assert produce(client, b"a", b"b") == (0, 0)
        broker.crash()
        with pytest.raises(OSError):  # noqa: PT011 - reset or end of stream, as the system likes
            client.ask(MetadataRequest(topics=[]), 12)
    assert not Path(broker.data, ".kafka_cleanshutdown").exists()
    broker.restart()
    with RawClient(broker.bootstrap) as client:
        assert produce(client, b"c") == (0, 2)


def test_settings_have_kafkas_names() -> None:
    with tailrace.Broker(auto_create_topics_enable=False, config={"num.partitions": 4}) as broker:
        broker.create_topic("four", partitions=-1, config={"retention.ms": 1000})
        with RawClient(broker.bootstrap) as client:
            topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("four", "absent")]
            answer = client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12)
    assert [(len(topic.partitions), topic.error_code) for topic in answer.topics] == [
        (4, 0),
        (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    with pytest.raises(InvalidConfig, match=r"num\.partitions"):
        tailrace.Broker(num_partitions="many").start()


def test_a_refused_topic_raises_an_error_with_the_reason(broker: tailrace.Broker) -> None:
    with pytest.raises(KafkaError, match="already exists"):
        broker.create_topic("t")


def test_a_second_broker_on_a_directory_is_refused(tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path) as first:
        with pytest.raises(DirectoryInUse):
            tailrace.Broker(tmp_path).start()
        first.create_topic("t")
    with tailrace.Broker(tmp_path) as second, RawClient(second.bootstrap) as client:
        assert produce(client, b"x") == (0, 0)


# Faults


def test_a_failed_produce_is_not_carried_out(broker: tailrace.Broker, client: RawClient) -> None:
    fault = broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    assert [produce(client, b"x") for _ in range(3)] == [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (0, 0),
    ]
    assert fault.hits == 2


def test_every_kind_of_response_can_have_the_error(broker: tailrace.Broker, client: RawClient) -> None:
    for api in ("Fetch", "ListOffsets", "Metadata", "CreateTopics", "DeleteTopics", "InitProducerId"):
        broker.fail(api, "CLUSTER_AUTHORIZATION_FAILED")
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    topic = client.ask(fetch_request(), 6).responses[0]
    assert topic.partitions[0].error_code == error
    assert client.ask(fetch_request(), 11).error_code == error
    assert list_offset(client, -1) == (error, -1)
    asked = [MetadataRequest.MetadataRequestTopic(name="t")]
    assert [topic.error_code for topic in client.ask(MetadataRequest(topics=asked), 9).topics] == [error]
    new = CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[new]), 7).topics[0].error_code == error
    assert client.ask(DeleteTopicsRequest(topic_names=["t"]), 5).responses[0].error_code == error
    assert client.ask(InitProducerIdRequest(transactional_id=None), 4).error_code == error
    broker.heal()
    assert [topic.name for topic in client.ask(MetadataRequest(topics=None), 9).topics] == ["t"]


def test_impossible_faults_are_refused(broker: tailrace.Broker) -> None:
    with pytest.raises(ValueError, match="there is no API 'Prodoose'"):
        broker.fail("Prodoose", "UNKNOWN_SERVER_ERROR")
    with pytest.raises(ValueError, match="there is no error 'OOPS'"):
        broker.fail("Produce", "OOPS")
    with pytest.raises(ValueError, match="no response with an error code"):
        broker.fail("DescribeConfigs", "UNKNOWN_SERVER_ERROR")


def test_a_fault_ends_with_its_block(broker: tailrace.Broker, client: RawClient) -> None:
    with broker.fault(broker.fail("Produce", "KAFKA_STORAGE_ERROR")) as fault:
        assert produce(client, b"x")[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(client, b"x") == (0, 0)
    assert fault.hits == 1


def test_a_dropped_request_is_not_carried_out(broker: tailrace.Broker, client: RawClient) -> None:
    broker.drop("Produce", times=1)
    with pytest.raises(ConnectionError):
        produce(client, b"x")
    with RawClient(broker.bootstrap) as again:
        assert end_offset(again) == 0
        assert produce(again, b"x") == (0, 0)


def test_a_request_with_a_lost_response_is_carried_out(broker: tailrace.Broker, client: RawClient) -> None:
    broker.drop("Produce", times=1, carried_out=True)
    with pytest.raises(ConnectionError):
        produce(client, b"x")
    with RawClient(broker.bootstrap) as again:
        assert end_offset(again) == 1


def test_a_delay_ends_by_the_brokers_clock(broker: tailrace.Broker, client: RawClient) -> None:
    fault = broker.delay("Produce", 3_600_000, times=1)
    client.send(produce_request(b"x"), 9)
    with RawClient(broker.bootstrap) as other:
        while fault.hits == 0:  # the two connections are not read in a known order
            end_offset(other)
        assert end_offset(other) == 0
        broker.move_clock(3_600_001)
        assert client.receive(0, 9).responses[0].partition_responses[0].base_offset == 0
        assert end_offset(other) == 1


def test_drop_connections_closes_all_connections(broker: tailrace.Broker, client: RawClient) -> None:
    assert produce(client, b"x") == (0, 0)
    assert broker.drop_connections() == 1
    with pytest.raises(ConnectionError):
        produce(client, b"y")


def test_move_clock_lets_retention_delete_segments() -> None:
    settings = {"log.retention.check.interval.ms": 300_000, "log.initial.task.delay.ms": 30_000}
    with tailrace.Broker(config=settings) as broker:
        broker.create_topic("t", config={"retention.ms": 3_600_000})
        with RawClient(broker.bootstrap) as client:
            assert produce(client, b"old") == (0, 0)
            broker.move_clock(2 * 3_600_000)
            broker.move_clock(300_001)
            deadline = time.monotonic() + 10
            while list_offset(client, -2) != (0, 1):
                assert time.monotonic() < deadline, list_offset(client, -2)
        with pytest.raises(ValueError, match="cannot be moved back"):
            broker.move_clock(-1)


def test_an_idempotent_producer_survives_all_faults_without_duplicates(broker: tailrace.Broker) -> None:
    """With lost responses, refused requests and dropped connections an idempotent producer writes every record once."""
    broker.drop("Produce", times=2, carried_out=True)
    broker.drop("Produce", times=1)
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.delay("Metadata", 20, times=2)
    values = [b"%d" % number for number in range(200)]
    settings = {"batch.num.messages": 20, "retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "log_level": 0}
    assert confluent.produce(broker.bootstrap, "t", 0, values, **settings) == list(range(200))
    assert [record.value for record in confluent.consume(broker.bootstrap, "t", 0)] == values
    assert [fault.is_over for fault in broker.faults] == [True, True, True, True]
