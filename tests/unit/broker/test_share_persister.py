"""SharePersister: share groups' state asked where it is kept, again where that is of use, and in order."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.shares.share_persister import RETRY_MS, RETRY_TIMEOUT_MS, SharePersister
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import (
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey, ShareWrite, StateBatch
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest

TOPIC = b"t" * 16
A, B = SharePartitionKey("g", TOPIC, 0), SharePartitionKey("g", TOPIC, 1)


class States:
    """The share states of this broker (id 1). It records writes and returns NONE or `refusal`."""

    def __init__(self) -> None:
        self.coordinator: int | None = 1
        self.written: list[ShareWrite] = []
        self.refusal: ErrorCode | None = None

    def coordinator_of(self, key: SharePartitionKey) -> int | None:
        return self.coordinator

    def write(self, key: SharePartitionKey, write: ShareWrite, answer: Any, refuse: Any, now_ms: int) -> None:
        if self.refusal is not None:
            refuse(KafkaError(self.refusal), now_ms)
            return
        self.written.append(write)
        answer(ErrorCode.NONE, now_ms)


class World:
    def __init__(self) -> None:
        self.states: Any = States()
        self.outbox = Outbox()
        endpoints = {"INSIDE": Endpoint("INSIDE", "127.0.0.1", 9002)}
        image = MetadataImage(
            brokers={2: BrokerRegistration(id=2, epoch=1, incarnation_id=bytes(16), endpoints=endpoints)}
        )
        peers = ShareStatePeers(self.outbox, lambda: image, listener="INSIDE", node_id=1, timeout_ms=1_000)
        self.persister = SharePersister(self.states, peers)
        self.answers: list[Any] = []

    def write(self, key: SharePartitionKey, start_offset: int, *batches: StateBatch, state_epoch: int = 0) -> None:
        write = ShareWrite(state_epoch, 3, start_offset, 0, batches)
        self.persister.write(key, write, self.answered, self.answered, 0)

    def answered(self, answer: Any, now_ms: int) -> None:
        self.answers.append(answer.code if isinstance(answer, KafkaError) else answer)

    def sent(self) -> list[OutgoingRequest]:
        return self.outbox.take_requests()


def starts(request: OutgoingRequest) -> dict[int, int]:
    body = request.body
    assert isinstance(body, WriteShareGroupStateRequest)
    return {one.partition: one.start_offset for topic in body.topics for one in topic.partitions}


def reported(codes: dict[int, ErrorCode]) -> WriteShareGroupStateResponse:
    response = WriteShareGroupStateResponse
    partitions = [response.PartitionResult(partition=one, error_code=code) for one, code in codes.items()]
    return response(results=[response.WriteStateResult(topic_id=TOPIC, partitions=partitions)])


def test_state_coordinated_here_is_written_without_a_request() -> None:
    world = World()
    world.write(A, 5)
    assert (world.answers, world.sent()) == ([ErrorCode.NONE], [])
    world.states.coordinator = None  # without the topic, the local share states are called, which create it
    world.write(A, 6)
    assert [one.start_offset for one in world.states.written] == [5, 6]


def test_writes_of_a_group_are_sent_together_after_the_request_in_flight() -> None:
    world = World()
    world.states.coordinator = 2
    other = SharePartitionKey("g", TOPIC, 2)
    for key in (A, B, other):
        world.write(key, 5)
    (first,) = world.sent()
    assert starts(first) == {0: 5}
    first.answered(reported({0: ErrorCode.NONE}), 10)
    (second,) = world.sent()
    assert starts(second) == {1: 5, 2: 5}
    second.answered(reported({1: ErrorCode.NONE, 2: ErrorCode.FENCED_LEADER_EPOCH}), 20)
    assert world.answers == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_write_is_retried_at_the_current_coordinator(code: ErrorCode) -> None:
    world = World()
    world.states.coordinator = 2
    world.write(A, 5)
    (request,) = world.sent()
    request.answered(reported({0: code}), 10)
    assert world.persister.next_deadline_ms() == 10 + RETRY_MS
    world.states.coordinator = 1
    world.persister.tick(10 + RETRY_MS)
    assert world.answers == [ErrorCode.NONE]
    assert world.persister.next_deadline_ms() is None


@pytest.mark.parametrize("failure", [Failure.UNREACHABLE, Failure.LOST, Failure.TIMED_OUT])
def test_retries_end_after_patience_ms(failure: Failure) -> None:
    world = World()
    world.states.coordinator = 2
    world.write(A, 5)
    now_ms = attempts = 0
    while not world.answers:
        for request in world.sent():
            attempts += 1
            request.failed(failure, now_ms)
        deadline_ms = world.persister.next_deadline_ms()
        now_ms = now_ms if deadline_ms is None else deadline_ms
        world.persister.tick(now_ms)
    assert RETRY_TIMEOUT_MS <= now_ms <= RETRY_TIMEOUT_MS + 1_000
    assert attempts > 20
    assert world.answers[0] in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)


def test_later_writes_are_merged_and_wait_for_a_retried_write() -> None:
    world = World()
    world.states.coordinator = 2
    done, again = StateBatch(5, 5, 2, 1), StateBatch(6, 6, 0, 1)
    world.write(A, 5, done)
    world.write(A, 6, again)
    world.write(A, 7)
    world.write(A, 8, state_epoch=1)  # another state epoch: not merged with the write before
    (request,) = world.sent()
    request.failed(Failure.LOST, 10)
    assert world.sent() == []
    world.states.coordinator = 1
    world.persister.tick(10 + RETRY_MS)
    assert [(one.start_offset, one.batches) for one in world.states.written] == [(5, (done,)), (7, (again,)), (8, ())]
    assert world.answers == [ErrorCode.NONE] * 4


def test_state_is_read_from_another_coordinator() -> None:
    world = World()
    world.states.coordinator = 2
    world.persister.read(A, 3, world.answered, world.answered, 0)
    (request,) = world.sent()
    response = ReadShareGroupStateResponse
    batch = response.StateBatch(first_offset=7, last_offset=9, delivery_state=2, delivery_count=1)
    part = response.PartitionResult(partition=0, state_epoch=4, start_offset=6, state_batches=[batch])
    result = response.ReadStateResult(topic_id=TOPIC, partitions=[part])
    request.answered(response(results=[result]), 10)
    assert world.answers == [PersistedState(0, 4, 3, 6, 0, (StateBatch(7, 9, 2, 1),))]


def test_a_response_without_the_partition_is_an_unknown_server_error() -> None:
    world = World()
    world.states.coordinator = 2
    world.write(A, 5)
    world.sent()[0].answered(reported({1: ErrorCode.NONE}), 10)
    assert world.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_write_without_a_coordinator_is_retried() -> None:
    world = World()
    world.states.coordinator = -1
    world.write(A, 5)
    assert (world.answers, world.sent()) == ([], [])
    world.states.coordinator = 2
    world.persister.tick(RETRY_MS)
    assert len(world.sent()) == 1
