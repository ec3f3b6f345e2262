"""A round of the loop: its Produce requests are written together, and a waiting Fetch ends with its connection."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.handling.appends import REQUESTS_A_ROUND
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.model.ids import TopicPartition
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from tests.support.batches import batch
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, start

TOPIC = "topic"


def broker_with_topic() -> tuple[Broker, bytes]:
    broker = start(MemoryFiles())
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    broker.services.local_controller.create_topics(CreateTopicsRequest(topics=[topic]), NOW_MS)
    return broker, broker.services.controller.image.topics[TOPIC].id


def send(broker: Broker, request: Any, version: int, connection_id: int) -> bool:
    header = RequestHeader(request.SCHEMA.api_key, version, 77, "client")
    frame = bytearray(write_request_header(header) + request.encode(version))
    return broker.handle(memoryview(frame), ConnectionContext(connection_id), NOW_MS)


def produce(topic_id: bytes, value: bytes) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(batch(value)))
    topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=-1, topic_data=[topic])


def fetch(topic_id: bytes) -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topic = FetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1_000, session_epoch=-1, topics=[topic])


def test_the_produce_requests_of_a_round_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, topic_id = broker_with_topic()
    log = broker.services.partitions.find(TopicPartition(TOPIC, 0)).log
    send(broker, produce(topic_id, b"first"), 13, 9)
    broker.take_replies()
    file = log.segments.active.log
    writes: list[int] = []
    original = file.write

    def write(position: int, data: Any) -> Any:
        writes.append(len(data))
        return original(position, data)

    monkeypatch.setattr(file, "write", write)
    for connection_id in range(5):
        send(broker, produce(topic_id, b"value"), 13, connection_id)
        assert log.log_end_offset == 1  # nothing is written before the round ends
    assert [reply.connection_id for reply in broker.take_replies()] == [0, 1, 2, 3, 4]
    assert (log.log_end_offset, log.high_watermark, len(writes)) == (6, 6, 1)


def test_a_round_takes_a_limited_number_of_produce_requests_beyond_one_of_each_connection() -> None:
    broker, topic_id = broker_with_topic()
    may_follow = [send(broker, produce(topic_id, b"value"), 13, 1) for _ in range(REQUESTS_A_ROUND)]
    assert may_follow == [True] * (REQUESTS_A_ROUND - 1) + [False]
    assert not send(broker, produce(topic_id, b"value"), 13, 2)
    assert len(broker.take_replies()) == REQUESTS_A_ROUND + 1
    assert send(broker, produce(topic_id, b"value"), 13, 1)  # the next round


def test_a_waiting_fetch_ends_with_its_connection() -> None:
    broker, topic_id = broker_with_topic()
    send(broker, fetch(topic_id), 17, 1)
    assert (len(broker.services.purgatory), broker.take_replies()) == (1, [])
    broker.connection_closed(1, NOW_MS)
    assert len(broker.services.purgatory) == 0
    send(broker, produce(topic_id, b"value"), 13, 2)
    assert [reply.connection_id for reply in broker.take_replies()] == [2]
