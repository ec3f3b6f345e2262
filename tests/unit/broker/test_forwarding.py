"""Forwarding: a client's request in an envelope, and the answer on its way back."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.cluster.forwarding import FORWARDED_UNCHECKED, Forwarding, serialized_principal
from tailrace.broker.requests.api_table import API_TABLE
from tailrace.broker.requests.request_context import ConnectionContext, Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.headers import read_request_header, write_response
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    UnregisterBrokerRequest,
)
from tailrace.waiting.outbox import Failure


class RecordedReplies:
    """Replies that record the responses."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any, int]] = []
        self.closed: list[int] = []

    def answer(self, request: Request, response: Any, now_ms: int, throttle_ms: int = 0) -> None:
        self.answers.append((request.correlation_id, response, throttle_ms))

    def reply_nothing(self, request: Request, now_ms: int, throttle_ms: int = 0, *, close: bool = False) -> None:
        self.closed.append(request.correlation_id)


class RecordedController:
    """A controller that records the requests, to which the test responds."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any, Any]] = []

    def forward(
        self, request: bytes, principal: bytes, client_address: bytes, answered: Any, failed: Any, now_ms: int
    ) -> None:
        body = EnvelopeRequest(request_data=request, request_principal=principal, client_host_address=client_address)
        self.asked.append((body, answered, failed))

    def ask(self, channel: str, body: Any, answered: Any, failed: Any, now_ms: int) -> None:
        self.asked.append((body, answered, failed))


@pytest.fixture
def replies() -> RecordedReplies:
    return RecordedReplies()


@pytest.fixture
def controller() -> RecordedController:
    return RecordedController()


@pytest.fixture
def forwarding(replies: RecordedReplies, controller: RecordedController) -> Forwarding:
    return Forwarding(replies, controller, timeout_ms=30_000)  # type: ignore[arg-type]


def request(version: int = 7, key: ApiKey = ApiKey.CREATE_TOPICS, body: Any = None) -> Request:
    context = ConnectionContext(1, client_host="127.0.0.2", principal="User:alice")
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    return Request(context, key, version, 42, "me", body or CreateTopicsRequest(topics=[topic]), 0)


def test_a_principal_is_written_as_kafka_writes_it() -> None:
    assert serialized_principal("User:alice") == b"\x00\x00" + b"\x05User" + b"\x06alice" + b"\x00" + b"\x00"


def test_a_forwarded_request_keeps_its_header_and_has_the_clients_principal(
    forwarding: Forwarding, replies: RecordedReplies, controller: RecordedController
) -> None:
    forwarding.forward(request(), 0)
    ((envelope, answered, _),) = controller.asked
    header, position = read_request_header(envelope.request_data)
    assert header == (ApiKey.CREATE_TOPICS, 7, 42, "me", ())
    inner: Any = CreateTopicsRequest.decode(envelope.request_data, 7, position)
    assert [one.name for one in inner.topics] == ["t"]
    assert envelope.client_host_address == bytes([127, 0, 0, 2])
    result = CreateTopicsResponse.CreatableTopicResult(name="t", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    response = CreateTopicsResponse(throttle_time_ms=9, topics=[result])
    answered(EnvelopeResponse(response_data=b"".join(write_response(19, 7, 42, response))), 1)
    ((correlation_id, answer, throttle_ms),) = replies.answers
    assert (correlation_id, throttle_ms) == (42, 9)
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_version_that_controllers_dropped_is_forwarded_in_their_oldest_version(
    forwarding: Forwarding, replies: RecordedReplies, controller: RecordedController
) -> None:
    forwarding.forward(request(version=0), 0)
    ((envelope, answered, _),) = controller.asked
    header, _ = read_request_header(envelope.request_data)
    assert header.api_version == 2
    answered(EnvelopeResponse(response_data=b"".join(write_response(19, 2, 42, CreateTopicsResponse()))), 1)
    assert len(replies.answers) == 1


def test_a_forwarded_request_without_a_response_gets_an_error_or_closes_the_connection(
    forwarding: Forwarding, replies: RecordedReplies, controller: RecordedController
) -> None:
    forwarding.forward(request(), 0)
    controller.asked[0][2](Failure.TIMED_OUT, 1)
    assert replies.closed == [42]  # CreateTopics has errors by topic only
    forwarding.forward(request(0, ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=7)), 0)
    controller.asked[1][2](Failure.TIMED_OUT, 1)
    assert replies.answers[0][1].error_code == ErrorCode.REQUEST_TIMED_OUT
    forwarding.forward(request(0, ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=7)), 0)
    controller.asked[2][1](EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 1)
    assert replies.answers[1][1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_is_requested_from_the_controllers_once_at_a_time(
    forwarding: Forwarding, controller: RecordedController
) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="__consumer_offsets", num_partitions=50, replication_factor=3)
    forwarding.make_topic(topic, None, 0)
    forwarding.make_topic(topic, None, 1)
    ((body, _, failed),) = controller.asked
    assert isinstance(body, CreateTopicsRequest)
    failed(Failure.LOST, 2)
    forwarding.make_topic(topic, request(), 3)
    body, answered, _ = controller.asked[1]
    assert isinstance(body, EnvelopeRequest)
    result = CreateTopicsResponse.CreatableTopicResult(name="__consumer_offsets")
    response = CreateTopicsResponse(topics=[result])
    answered(EnvelopeResponse(response_data=b"".join(write_response(19, 7, 42, response))), 4)
    forwarding.make_topic(topic, None, 5)
    assert len(controller.asked) == 3


def test_every_forwarded_api_is_in_the_api_table() -> None:
    assert set(API_TABLE) >= FORWARDED_UNCHECKED
