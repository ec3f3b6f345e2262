"""Produce with acks=all: requests of one connection that wait together, and what comes behind them."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.log.segments.position import LogPosition
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.messages import ApiVersionsRequest, CreateTopicsRequest, ProduceRequest, ProduceResponse
from tailrace.records.builder import BatchBuilder
from tests.simulation.node import registration
from tests.support.memory_node import NOW_MS, start

PRODUCER = ConnectionContext(5)
VERSION = 12


class Leader:
    """A broker that leads two partitions, each with a follower in sync."""

    def __init__(self) -> None:
        self.broker: Broker = start()
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        self.broker.services.local_controller.create_topics(CreateTopicsRequest(topics=[topic]), NOW_MS)
        self.broker.handle(_frame(ProduceRequest(acks=1), VERSION, 0), PRODUCER, NOW_MS)
        self.broker.take_replies()
        self.partitions = [self.broker.services.partitions.find(TopicPartition("t", index)) for index in range(2)]
        for partition in self.partitions:
            partition.log.config = replace(partition.log.config, min_insync_replicas=2)
            self.lead(partition, (self.broker.services.controller.node_id, 2), epoch=1)
            assert self.send(partition.key.partition, 90, acks=1) is True
        assert self.answers() == [90, 90]

    def lead(self, partition: Any, isr: tuple[int, ...], epoch: int) -> None:
        node_id = self.broker.services.controller.node_id
        partition.make_leader(registration(node_id, (node_id, 2), isr, leader_epoch=1, partition_epoch=epoch), NOW_MS)

    def send(self, partition: int, correlation_id: int, *, acks: int = -1, timeout_ms: int = 1_000) -> bool:
        """Return True if another request of the connection may follow."""
        builder = BatchBuilder()
        builder.append(NOW_MS, None, b"%d" % correlation_id)
        data = ProduceRequest.PartitionProduceData(index=partition, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
        return self.broker.handle(memoryview(_frame(request, VERSION, correlation_id)), PRODUCER, NOW_MS)

    def follow(self, partition: int, end: int | None = None) -> None:
        """Note that the follower has fetched up to `end`, or all records."""
        one = self.partitions[partition]
        assert one.leader is not None
        offset = one.log.log_end_offset if end is None else end
        progress = one.leader.followers[2]
        one.leader.note_fetch(progress, LogPosition(offset), 0, one.log.log_end_offset, -1, NOW_MS)
        self.broker.services.current_round.appended(one.key, NOW_MS)

    def answers(self) -> list[int]:
        """Return the correlation ids of the responses."""
        return [
            struct.unpack_from(">i", bytes(reply.parts[0]))[0] for reply in self.broker.take_replies() if reply.parts
        ]


def _frame(request: Any, version: int, correlation_id: int) -> bytearray:
    header = RequestHeader(request.SCHEMA.api_key, version, correlation_id, "client")
    return bytearray(write_request_header(header) + request.encode(version))


def test_requests_for_one_partition_wait_together_and_are_answered_in_order() -> None:
    leader = Leader()
    assert [leader.send(0, number) for number in (1, 2, 3)] == [True, True, True]
    assert leader.answers() == []
    leader.follow(0, 3)  # the record before the requests, and two of theirs
    assert leader.answers() == [1, 2]
    leader.follow(0)
    assert leader.answers() == [3]
    assert not leader.broker.services.appends._lines


def test_a_request_for_another_partition_is_appended_at_once_and_answered_in_its_turn() -> None:
    leader = Leader()
    assert leader.send(0, 1) is True
    assert leader.send(1, 2) is True
    assert leader.answers() == []
    assert leader.partitions[1].log.log_end_offset == 2
    leader.follow(1)
    assert leader.answers() == []
    leader.follow(0)
    assert leader.answers() == [1, 2]


def test_a_request_of_another_api_waits_for_earlier_produce_requests() -> None:
    leader = Leader()
    leader.send(0, 1)
    leader.send(0, 2)
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    assert leader.broker.handle(memoryview(_frame(request, 3, 3)), PRODUCER, NOW_MS) is False
    assert leader.answers() == []
    leader.follow(0)
    assert leader.answers() == [1, 2, 3]


def test_a_later_produce_does_not_time_out_before_an_earlier_one() -> None:
    leader = Leader()
    leader.send(0, 1, timeout_ms=1_000)
    leader.send(0, 2, timeout_ms=10)
    leader.broker.take_replies()
    leader.broker.tick(NOW_MS + 500)
    assert leader.answers() == []
    leader.broker.tick(NOW_MS + 1_000)
    replies = leader.broker.take_replies()
    reported = []
    for reply in replies:
        data = b"".join(bytes(part) for part in reply.parts or ())  # type: ignore[arg-type]
        answer: Any = ProduceResponse.decode(data, VERSION, read_response_header(0, VERSION, data)[1])
        reported.append((struct.unpack_from(">i", data)[0], answer.responses[0].partition_responses[0].error_code))
    assert reported == [(1, ErrorCode.REQUEST_TIMED_OUT), (2, ErrorCode.REQUEST_TIMED_OUT)]


def test_a_shrunk_isr_refuses_waiting_and_new_produce_requests() -> None:
    leader = Leader()
    leader.send(0, 1)
    leader.broker.take_replies()
    leader.lead(leader.partitions[0], (leader.broker.services.controller.node_id,), epoch=2)
    leader.partitions[0].log.advance_high_watermark(10)
    leader.broker.services.current_round.appended(leader.partitions[0].key, NOW_MS)
    (reply,) = leader.broker.take_replies()
    data = b"".join(bytes(part) for part in reply.parts or ())  # type: ignore[arg-type]
    answer: Any = ProduceResponse.decode(data, VERSION, read_response_header(0, VERSION, data)[1])
    part = answer.responses[0].partition_responses[0]
    assert (part.error_code, part.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 1)
    leader.send(0, 2)  # refused at once
    assert leader.answers() == [2]


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_closed_connection_has_no_waiting_produce_requests(is_answered: bool) -> None:
    leader = Leader()
    leader.send(0, 1)
    leader.send(0, 2)
    leader.send(1, 3)
    leader.broker.take_replies()
    leader.broker.connection_closed(PRODUCER.connection_id, NOW_MS)
    assert not leader.broker.services.appends._lines
    if is_answered:
        leader.follow(0)
        leader.broker.take_replies()
        leader.follow(1)
        assert leader.broker.take_replies() == []
    assert leader.partitions[1].log.log_end_offset == 2
