"""The broker as a whole, without a server: requests in, replies out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from tailrace.protocol.registry import request_class
from tailrace.records.builder import BatchBuilder
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.simulation.node import registration
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start


def batch(*values: bytes) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(NOW_MS, b"k", value)
    return builder.build()


def messages(magic: int, *values: bytes) -> bytes:
    kind = TimestampType.NO_TIMESTAMP if magic == 0 else TimestampType.CREATE_TIME
    timestamp = -1 if magic == 0 else NOW_MS
    records = [Record(number, timestamp, kind, b"k", value) for number, value in enumerate(values)]
    return build_messages(records, magic=magic)


@pytest.fixture
def client() -> Client:
    client = Client(start())
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    return client


def topic_id(client: Client) -> bytes:
    return client.broker.services.controller.image.topics["orders"].id


def produce(client: Client, version: int, records: bytes, acks: int = 1) -> Any:
    part = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(partition_data=[part])
    if version >= 13:
        topic.topic_id = topic_id(client)
    else:
        topic.name = "orders"
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def fetch(client: Client, version: int, offset: int = 0, wait_ms: int = 0) -> FetchRequest:
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
    topic = FetchRequest.FetchTopic(partitions=[part])
    if version >= 13:
        topic.topic_id = topic_id(client)
    else:
        topic.topic = "orders"
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=[topic])


@pytest.mark.parametrize("version", range(14))
def test_produce_of_every_version_is_answered_with_the_offset(client: Client, version: int) -> None:
    records = messages(min(version // 2, 1), b"a", b"b") if version < 3 else batch(b"a", b"b")
    for expected in (0, 2):
        answer = client.ask(produce(client, version, records), version).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, expected)


@pytest.mark.parametrize("version", range(19))
def test_fetch_of_every_version_returns_the_records(client: Client, version: int) -> None:
    client.ask(produce(client, 12, batch(b"a", b"b")), 12)
    part = client.ask(fetch(client, version), version).responses[0].partitions[0]
    assert (part.error_code, part.high_watermark) == (0, 2)
    assert bytes(part.records)[16] == (2 if version >= 4 else 1 if version >= 2 else 0)


@pytest.mark.parametrize("version", range(12))
def test_list_offsets_of_every_version_returns_the_end_offset(client: Client, version: int) -> None:
    client.ask(produce(client, 12, batch(b"a", b"b", b"c")), 12)
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="orders", partitions=[asked])
    part = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), version).topics[0].partitions[0]
    assert part.error_code == 0
    assert (part.old_style_offsets[0] if version == 0 else part.offset) == 3


def test_list_offsets_of_version_0_returns_the_high_watermark_once(client: Client) -> None:
    client.ask(produce(client, 12, batch(b"a")), 12)
    partition: Any = client.broker.services.partitions.find(TopicPartition("orders", 0))
    partition.make_leader(registration(1, (1, 2), (1, 2), leader_epoch=1, partition_epoch=1), NOW_MS)
    for value in (b"b", b"c", b"d"):  # the follower has none of them
        partition.log.roll(NOW_MS)
        written = client.ask(produce(client, 12, batch(value)), 12).responses[0].partition_responses[0]
        assert written.error_code == 0
    assert len(partition.log.segments) == 4
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=10)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="orders", partitions=[asked])
    part = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 0).topics[0].partitions[0]
    assert part.old_style_offsets == [1, 0]


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_every_version_returns_the_leader(client: Client, version: int) -> None:
    response = client.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")]), version)
    assert [(one.node_id, one.host, one.port) for one in response.brokers] == [(1, "127.0.0.1", 9092)]
    assert [(one.partition_index, one.leader_id) for one in response.topics[0].partitions] == [(0, 1), (1, 1)]


def test_metadata_names_the_registered_brokers_while_none_is_alive(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that gets no broker at all has no address for a retry."""
    log = client.broker.services.local_controller.log
    fenced = {one.id: replace(one, fenced=True) for one in log.image.brokers.values()}
    monkeypatch.setattr(log, "image", replace(log.image, brokers=fenced))
    assert log.image.unfenced_brokers() == []
    assert [one.node_id for one in client.ask(MetadataRequest(topics=[]), 12).brokers] == [1]


@pytest.mark.parametrize(
    ("key", "version"),
    [(row.key, version) for row in API_TABLE.values() for version in range(row.min_version, row.max_version + 1)],
)
def test_an_empty_request_of_every_advertised_version_is_answered(client: Client, key: int, version: int) -> None:
    request = request_class(key)()
    if key == 18:
        request.client_software_name = request.client_software_version = "test"
    if key == 0:
        request.acks = 1
    if key == 29:  # "unknown" is nothing that may be asked for
        request.resource_type_filter = request.pattern_type_filter = request.operation = request.permission_type = 1
    (reply,) = client.send(request, version)
    assert reply.parts is not None
    client.decode(reply, key, version)


def test_a_fetch_at_the_end_waits_and_is_answered_by_the_next_append(client: Client) -> None:
    assert client.send(fetch(client, 12, wait_ms=500), 12) == []
    writer = Client(client.broker)
    writer.context.connection_id = 2
    replies = writer.send(produce(client, 12, batch(b"a")), 12)
    assert sorted(reply.connection_id for reply in replies) == [1, 2]
    (waiting,) = [reply for reply in replies if reply.connection_id == 1]
    assert client.decode(waiting, 1, 12).responses[0].partitions[0].high_watermark == 1


def test_a_fetch_that_nothing_wakes_is_answered_at_its_deadline(client: Client) -> None:
    assert client.send(fetch(client, 12, wait_ms=500), 12) == []
    client.broker.tick(NOW_MS + 499)
    assert client.broker.take_replies() == []
    client.broker.tick(NOW_MS + 500)
    (reply,) = client.broker.take_replies()
    assert client.decode(reply, 1, 12).responses[0].partitions[0].error_code == 0


def test_acks_0_is_not_answered_and_closes_the_connection_when_refused(client: Client) -> None:
    (reply,) = client.send(produce(client, 12, batch(b"a"), acks=0), 12)
    assert (reply.parts, reply.close) == (None, False)
    (reply,) = client.send(produce(client, 12, batch(b"a")[:-1] + b"\x01", acks=0), 12)
    assert (reply.parts, reply.close) == (None, True)


def test_a_missing_topic_is_created_when_a_client_asks_for_it(client: Client) -> None:
    asked = MetadataRequest.MetadataRequestTopic(name="new")
    refused = client.ask(MetadataRequest(topics=[asked], allow_auto_topic_creation=False), 12).topics[0]
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    made = client.ask(MetadataRequest(topics=[asked], allow_auto_topic_creation=True), 12).topics[0]
    assert (made.error_code, made.name, len(made.partitions)) == (0, "new", 1)


def test_a_deleted_topic_is_gone_at_once(client: Client) -> None:
    client.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="orders")]), 6)
    answer = client.ask(produce(client, 12, batch(b"a")), 12).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: Client) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1").encode(4)
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x01t\x00" + request
    client.broker.handle(frame, client.context, NOW_MS)
    (reply,) = client.broker.take_replies()
    response = client.decode(reply, 18, 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in response.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize(
    "frame", [b"", b"\x00", b"\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff", b"\x00\x01\x00\x0c" + b"\xff" * 40]
)
def test_invalid_bytes_close_only_their_connection(client: Client, frame: bytes) -> None:
    client.broker.handle(frame, client.context, NOW_MS)
    (reply,) = client.broker.take_replies()
    assert (reply.parts, reply.close) == (None, True)


def test_topics_and_records_survive_a_clean_stop_and_a_crash() -> None:
    files = MemoryFiles()
    for stop in ("close", "abandon"):
        client = Client(start(files))
        topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[topic]), 7)
        client.ask(produce(client, 12, batch(b"a")), 12)
        if stop == "close":
            client.broker.close(NOW_MS)
        else:
            client.broker.abandon()
    client = Client(start(files))
    part = client.ask(fetch(client, 12), 12).responses[0].partitions[0]
    assert (part.error_code, part.high_watermark) == (0, 2)
