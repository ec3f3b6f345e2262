"""Produce requests that are refused: the error, and the order of the checks, are Kafka's."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from tailrace.records.batch import ATTRIBUTES_POSITION, CRC_POSITION, LENGTH_POSITION, MAGIC_POSITION
from tailrace.records.codecs.crc32c import crc32c
from tests.support.batches import batch
from tests.support.memory_node import NOW_MS, Client, start

GOOD = bytes(batch(b"value", timestamp=NOW_MS))
CLIENT_MAY_NOT_WRITE = ("__consumer_offsets", "__transaction_state")


@pytest.fixture
def client() -> Client:
    made = Client(start())
    configs = [CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="")]
    made.ask(
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(name="topic", num_partitions=2, replication_factor=1),
                CreateTopicsRequest.CreatableTopic(
                    name="kept", num_partitions=1, replication_factor=1, configs=configs
                ),
            ],
            timeout_ms=1_000,
        ),
        7,
    )
    for kind in (0, 1):
        made.ask(FindCoordinatorRequest(key="any", key_type=kind), 1)
    return made


def produce(client: Client, *parts: tuple[str, int, bytes], version: int = 9, **fields: Any) -> list[int]:
    """Return the error codes."""
    topics = [
        ProduceRequest.TopicProduceData(
            name=name, partition_data=[ProduceRequest.PartitionProduceData(index=index, records=records)]
        )
        for name, index, records in parts
    ]
    answer = client.ask(ProduceRequest(**{"acks": -1, "timeout_ms": 1_000, **fields}, topic_data=topics), version)
    return [one.error_code for topic in answer.responses for one in topic.partition_responses]


def changed(position: int, layout: str, value: int) -> bytes:
    data = bytearray(GOOD)
    struct.pack_into(layout, data, position, value)
    struct.pack_into(">I", data, CRC_POSITION, crc32c(bytes(data[ATTRIBUTES_POSITION:])))
    return bytes(data)


@pytest.mark.parametrize("topic", CLIENT_MAY_NOT_WRITE)
def test_records_for_an_internal_topic_are_refused(client: Client, topic: str) -> None:
    assert produce(client, (topic, 0, GOOD), ("topic", 0, GOOD)) == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    client.client_id = "__admin_client"
    assert produce(client, (topic, 0, bytes(batch((b"key", None), timestamp=NOW_MS)))) == [0]


def test_unknown_acks_are_refused_after_partition_and_format_are_checked(client: Client) -> None:
    parts = (("topic", 0, GOOD), ("topic", 7, GOOD), ("nowhere", 0, GOOD), ("topic", 1, GOOD + GOOD))
    assert produce(client, *parts, acks=2) == [
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
    ]


def test_an_unknown_partition_is_reported_before_the_format_of_its_records(client: Client) -> None:
    assert produce(client, ("topic", 7, GOOD + GOOD)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_is_added_to_the_transaction_even_if_the_acks_are_refused(client: Client) -> None:
    made = client.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    records = batch(
        b"v", timestamp=NOW_MS, producer_id=made.producer_id, producer_epoch=0, sequence=0, transactional=True
    )
    parts = (("topic", 0, bytes(records)), ("topic", 7, bytes(records)))
    assert produce(client, *parts, version=12, acks=2, transactional_id="tx") == [
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    (state,) = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert state.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("topic", [0])]


@pytest.mark.parametrize("length", [-5, 1, 13])
def test_a_first_batch_of_impossible_length_is_the_error_of_the_whole_request(client: Client, length: int) -> None:
    parts = (("topic", 0, GOOD), ("nowhere", 0, GOOD), ("topic", 1, changed(LENGTH_POSITION, ">i", length)))
    assert produce(client, *parts) == [ErrorCode.CORRUPT_MESSAGE] * 3


def test_a_first_batch_of_unknown_magic_is_the_error_of_the_whole_request(client: Client) -> None:
    parts = (("topic", 0, GOOD), ("nowhere", 0, GOOD), ("topic", 1, changed(MAGIC_POSITION, ">b", 3)))
    assert produce(client, *parts) == [ErrorCode.CORRUPT_MESSAGE] * 3


def test_a_first_batch_that_is_shorter_than_its_header_is_the_error_of_its_partition(client: Client) -> None:
    parts = (("topic", 0, GOOD), ("topic", 1, changed(LENGTH_POSITION, ">i", 30)))
    assert produce(client, *parts)[0] == 0


def test_an_unknown_codec_is_the_error_of_the_whole_request_before_version_7(client: Client) -> None:
    parts = (("topic", 0, GOOD), ("topic", 1, changed(ATTRIBUTES_POSITION, ">h", 6)))
    assert produce(client, *parts, version=6) == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert produce(client, *parts, version=7) == [0, ErrorCode.UNKNOWN_SERVER_ERROR]


def list_offsets(client: Client, name: str, timestamp: int, version: int, **fields: Any) -> int:
    part = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[part])
    answer = client.ask(ListOffsetsRequest(**{"replica_id": -1, **fields}, topics=[topic]), version)
    error: int = answer.topics[0].partitions[0].error_code
    return error


def test_a_timestamp_of_a_later_version_is_reported_before_an_unknown_topic(client: Client) -> None:
    assert list_offsets(client, "nowhere", -3, 6) == ErrorCode.UNSUPPORTED_VERSION
    assert list_offsets(client, "nowhere", -3, 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("replica", [-1, -2, 7])
def test_an_unknown_isolation_level_is_the_error_of_every_partition(client: Client, replica: int) -> None:
    for name in ("topic", "nowhere"):
        error = list_offsets(client, name, -1, 7, replica_id=replica, isolation_level=2)
        assert error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_are_deleted_from_a_topic_without_a_cleanup_policy(client: Client) -> None:
    assert produce(client, ("kept", 0, GOOD)) == [0]
    part = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name="kept", partitions=[part])
    answer = client.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1_000), 2)
    assert [(one.error_code, one.low_watermark) for one in answer.topics[0].partitions] == [(0, 1)]
