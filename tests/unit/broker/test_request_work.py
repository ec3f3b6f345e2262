"""Produce and ListOffsets whose batches are examined on a worker thread, and what may happen meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.waiting.chore import Chore
from tests.support.memory_node import NOW_MS, Client, start, with_request_work

VERSION = 9


class Beside:
    """A broker whose chores run when the test decides."""

    def __init__(self) -> None:
        self.chores: list[Chore] = []
        self.broker: Broker = with_request_work(start(), self.chores.append)
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        Client(self.broker, connection_id=99).ask(CreateTopicsRequest(topics=[topic]), 5)

    def run_one(self) -> None:
        chore = self.chores.pop(0)
        try:
            result = chore.run()
        except Exception as error:
            chore.failed(error, NOW_MS)
        else:
            chore.apply(result, NOW_MS)

    def run_all(self) -> None:
        while self.chores:
            self.run_one()

    def answers(self, client: Client, api_key: int, version: int) -> list[Any]:
        return [client.decode(reply, api_key, version) for reply in self.broker.take_replies()]


@pytest.fixture
def beside() -> Beside:
    return Beside()


def packed(first: int = 0, *, producer_id: int = -1, sequence: int = -1, codec: Codec = Codec.GZIP) -> bytes:
    builder = BatchBuilder(
        codec=codec, producer_id=producer_id, producer_epoch=0 if producer_id >= 0 else -1, base_sequence=sequence
    )
    for index in range(1_000):
        builder.append(NOW_MS + index, b"%d" % (first + index), b"value of a record %d" % index)
    return builder.build()


def produce(*records: bytes, acks: int = 1) -> ProduceRequest:
    parts = [ProduceRequest.PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=parts)
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic])


def codes(response: Any) -> list[tuple[int, int]]:
    return [(one.error_code, one.base_offset) for one in response.responses[0].partition_responses]


def test_a_compressed_batch_is_checked_by_a_chore_and_then_appended(beside: Beside) -> None:
    client = Client(beside.broker)
    assert client.send(produce(packed(), packed()), VERSION) == []
    assert len(beside.chores) == 1, "one part of a request at a time"
    beside.run_all()
    (answer,) = beside.answers(client, 0, VERSION)
    assert codes(answer) == [(0, 0), (0, 0)]


def test_other_clients_are_served_while_a_batch_is_checked(beside: Beside) -> None:
    Client(beside.broker).send(produce(packed()), VERSION)
    assert Client(beside.broker, connection_id=2).ask(ApiVersionsRequest(), 0).error_code == 0
    assert len(beside.chores) == 1


def test_a_refused_batch_does_not_affect_other_batches(beside: Beside) -> None:
    client = Client(beside.broker)
    broken = bytearray(packed())
    broken[-1] ^= 1
    client.send(produce(bytes(broken), packed()), VERSION)
    beside.run_all()
    (answer,) = beside.answers(client, 0, VERSION)
    assert codes(answer) == [(ErrorCode.CORRUPT_MESSAGE, -1), (0, 0)]


def test_requests_take_turns_batch_by_batch(beside: Beside) -> None:
    first, second, third = (Client(beside.broker, connection_id=number) for number in (1, 2, 3))
    first.send(produce(packed(), packed()), VERSION)
    second.send(produce(packed(), packed()), VERSION)
    third.send(produce(packed()), VERSION)
    assert len(beside.chores) == 2
    beside.run_one()  # the first's first; the third comes before the first's second
    beside.run_one()
    beside.run_one()
    assert [reply.connection_id for reply in beside.broker.take_replies()] == [3]
    beside.run_all()
    assert len(beside.broker.take_replies()) == 2


def test_a_topic_that_is_deleted_while_its_batch_is_checked_gets_nothing(beside: Beside) -> None:
    client = Client(beside.broker)
    client.send(produce(packed()), VERSION)
    Client(beside.broker, connection_id=2).send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1_000), 5)
    beside.broker.take_replies()
    beside.run_all()
    replies = [reply for reply in beside.broker.take_replies() if reply.connection_id == 1]
    assert codes(client.decode(replies[0], 0, VERSION)) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_batches_of_a_disconnected_client_are_not_checked(beside: Beside) -> None:
    for number in (1, 2, 3):
        Client(beside.broker, connection_id=number).send(produce(packed(), packed()), VERSION)
    for number in (1, 3):
        beside.broker.connection_closed(number, NOW_MS)
    ran = 0
    while beside.chores:
        beside.run_one()
        ran += 1
    assert ran == 3, "the one that had begun, and both of the client that is there"
    assert [reply.connection_id for reply in beside.broker.take_replies()] == [2]


def test_sequences_of_an_idempotent_producer_are_checked_when_the_batch_is_appended(beside: Beside) -> None:
    client = Client(beside.broker)
    answers = []
    for sequence in (0, 1_000, 1_000):
        client.send(produce(packed(producer_id=7, sequence=sequence)), VERSION)
        beside.run_all()
        answers += beside.answers(client, 0, VERSION)
    assert [codes(answer) for answer in answers] == [[(0, 0)], [(0, 1_000)], [(0, 1_000)]]
    client.send(produce(packed(producer_id=7, sequence=5_000)), VERSION)
    beside.run_all()
    (answer,) = beside.answers(client, 0, VERSION)
    assert codes(answer)[0][0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_lookup_by_timestamp_searches_a_compressed_batch_in_a_chore(beside: Beside) -> None:
    client = Client(beside.broker)
    client.send(produce(packed()), VERSION)
    beside.run_all()
    beside.broker.take_replies()
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=NOW_MS + 500)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[asked])
    assert client.send(ListOffsetsRequest(replica_id=-1, topics=[topic]), 5) == []
    assert len(beside.chores) == 1
    beside.run_all()
    (answer,) = beside.answers(client, 2, 5)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset, found.timestamp) == (0, 500, NOW_MS + 500)
