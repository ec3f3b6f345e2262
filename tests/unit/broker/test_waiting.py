"""Waiting requests: the memory that they keep, and their end when the client disconnects."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    FetchRequest,
    ProduceRequest,
)
from tailrace.records.builder import BatchBuilder
from tests.support.memory_node import NOW_MS, Client, start


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Return a broker whose partitions have other replicas, which do not exist and never respond."""
    broker = start()
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    assert Client(broker).ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    for module in ("broker.handling.appends", "replication.delayed_produce"):
        monkeypatch.setattr(f"tailrace.{module}.try_decide", _never)
    return broker


def fetch_request(session_epoch: int = -1) -> FetchRequest:
    parts = [FetchRequest.FetchPartition(partition=number, partition_max_bytes=1000) for number in (0, 1)]
    topics = [FetchRequest.FetchTopic(topic="orders", partitions=parts)]
    return FetchRequest(max_wait_ms=5000, min_bytes=1, session_epoch=session_epoch, topics=topics)


def produce_request(acks: int = -1) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(NOW_MS, b"k", b"v" * 5000)
    parts = [ProduceRequest.PartitionProduceData(index=number, records=builder.build()) for number in (0, 1)]
    topics = [ProduceRequest.TopicProduceData(name="orders", partition_data=parts)]
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=topics)


WAITING = {
    "fetch": (fetch_request(), 12),
    "fetch with a session": (fetch_request(session_epoch=0), 12),
    "produce": (produce_request(), 12),
}


def send(broker: Broker, request: Any, version: int, connection_id: int = 1) -> bytearray:
    """Hand over a request that has to wait; return the memory it was received in."""
    header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "test"))
    memory = bytearray(header + request.encode(version))
    broker.handle(memoryview(memory), ConnectionContext(connection_id), NOW_MS)
    assert broker.take_replies() == []
    assert len(broker.services.purgatory) > 0
    return memory


@pytest.mark.parametrize("kind", WAITING)
def test_a_waiting_request_does_not_hold_its_receive_buffer(broker: Broker, kind: str) -> None:
    memory = send(broker, *WAITING[kind])
    memory.append(0)  # raises while a view of the memory exists
    broker.tick(NOW_MS + 5000)
    (reply,) = broker.take_replies()
    assert reply.parts


@pytest.mark.parametrize("kind", WAITING)
def test_waiting_operations_of_a_closed_connection_are_cancelled(broker: Broker, kind: str) -> None:
    send(broker, *WAITING[kind])
    send(broker, *WAITING[kind], connection_id=2)
    broker.connection_closed(1, NOW_MS)
    assert len(broker.services.purgatory) == 1
    broker.tick(NOW_MS + 5000)
    assert [reply.connection_id for reply in broker.take_replies()] == [2]
    assert broker.services.replies._parked == {}


def test_records_stay_when_their_producer_disconnects(broker: Broker) -> None:
    send(broker, *WAITING["produce"])
    broker.connection_closed(1, NOW_MS)
    partition = next(one for one in broker.services.partitions if one.key.partition == 0)
    assert partition.log.log_end_offset == 1


def test_a_response_ends_the_wait_of_its_connection(broker: Broker) -> None:
    send(broker, *WAITING["fetch"])
    Client(broker, connection_id=2).send(produce_request(acks=1), 12)
    assert (broker.services.replies._parked, len(broker.services.purgatory)) == ({}, 0)
    broker.connection_closed(1, NOW_MS)
    send(broker, *WAITING["produce"], connection_id=3)
    broker.connection_closed(1, NOW_MS)
    assert len(broker.services.purgatory) == 1


@pytest.mark.parametrize("end", ["woken", "expired"])
def test_a_fetch_that_has_waited_leaves_nothing_to_the_garbage_collector(broker: Broker, end: str) -> None:
    producer = Client(broker, connection_id=2)
    producer.ask(produce_request(acks=1), 12)
    Client(broker, connection_id=3).ask(fetch_request(), 12)  # imports the handler
    at_the_end = fetch_request()
    for part in at_the_end.topics[0].partitions:
        part.fetch_offset = 1
    gc.collect()
    gc.disable()
    try:
        send(broker, at_the_end, 12)
        if end == "woken":
            producer.send(produce_request(acks=1), 12)
        else:
            broker.tick(NOW_MS + 5000)
        assert len(broker.services.purgatory) == 0
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_waiting_delete_records_is_cancelled_when_its_connection_closes(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    Client(broker, connection_id=2).send(produce_request(acks=1), 12)
    part = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name="orders", partitions=[part])
    monkeypatch.setattr("tailrace.replication.delayed_delete_records.DelayedDeleteRecords.try_complete", _never)
    monkeypatch.setattr("tailrace.replication.delayed_delete_records.DeletedPartition.is_done", False)
    send(broker, DeleteRecordsRequest(topics=[topic], timeout_ms=5000), 2).append(0)
    broker.connection_closed(1, NOW_MS)
    assert len(broker.services.purgatory) == 0


def _never(*_: object) -> bool:
    return False


@pytest.mark.parametrize("name", list(WAITING))
def test_the_description_of_a_waiting_request_names_its_client(broker: Broker, name: str) -> None:
    request, version = WAITING[name]
    header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "shop"))
    client = ConnectionContext(1, client_host="10.1.2.3", client_port=4567, principal="User:alice")
    broker.handle(memoryview(header + request.encode(version)), client, NOW_MS)
    assert broker.take_replies() == []
    (found,) = [one for one in broker.describe_waiting(NOW_MS + 30)["operations"] if one["kind"].startswith("Delayed")]
    assert {key: found[key] for key in ("clientId", "user", "address", "waitedMs")} == {
        "clientId": "shop",
        "user": "User:alice",
        "address": "10.1.2.3:4567",
        "waitedMs": 30,
    }
