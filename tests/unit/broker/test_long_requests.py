"""Requests that would hold the loop: cut into pieces, paused between them, decoded and encoded by chores."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.handling.request_decoder import ELEMENTS_AT_ONCE, ELEMENTS_MAX
from tailrace.broker.handling.request_pieces import CUTS, cut_of, handle_in_pieces
from tailrace.broker.requests.request_context import ConnectionContext, Reply, Request
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import run_steps
from tailrace.protocol import messages as m
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.registry import request_class, response_class
from tests.support.memory_node import NOW_MS, Client, start


class Patient:
    """A broker in which the test decides when turns end and when chores run."""

    def __init__(self) -> None:
        self.is_over = False
        self.chores: deque[Any] = deque()
        self.broker = start(submit=self.chores.append, is_turn_over=lambda: self.is_over)
        self.client, self.other = Client(self.broker), Client(self.broker, connection_id=2)

    def run_chore(self) -> None:
        chore = self.chores.popleft()
        try:
            result = chore.run()
        except Exception as error:
            chore.failed(error, NOW_MS)
        else:
            chore.apply(result, NOW_MS)


def names(count: int) -> m.MetadataRequest:
    wanted = [m.MetadataRequest.MetadataRequestTopic(name=f"topic-{number}") for number in range(count)]
    return m.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


@pytest.mark.parametrize("key", CUTS, ids=lambda key: key.name)
def test_each_cut_names_arrays_of_the_request_and_of_its_response(key: ApiKey) -> None:
    for cut in CUTS[key]:
        for made, path in ((request_class(key), cut.asked), (response_class(key), cut.answered)):
            schema: Any = made.SCHEMA
            for name in path:
                field = next(one for one in schema.fields if one.attribute == name)
                assert field.is_array
                schema = field.struct


def test_a_long_request_pauses_and_other_clients_are_served_in_between() -> None:
    patient = Patient()
    patient.is_over = True
    assert patient.client.send(names(50), 9) == []
    assert patient.broker.next_deadline_ms() == 0
    assert patient.other.ask(m.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    patient.is_over = False
    patient.broker.tick(NOW_MS)
    patient.run_chore()
    (reply,) = patient.broker.take_replies()
    response = Client.decode(reply, ApiKey.METADATA, 9)
    assert [topic.name for topic in response.topics] == [f"topic-{number}" for number in range(50)]
    assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert response.brokers


def test_a_request_of_many_elements_is_decoded_by_a_chore() -> None:
    patient = Patient()
    assert patient.client.send(m.DescribeGroupsRequest(groups=["g"] * (ELEMENTS_AT_ONCE + 1)), 5) == []
    assert patient.chores[0].is_prompt  # it does not wait for a compaction or a sync
    patient.run_chore()
    patient.run_chore()
    (reply,) = patient.broker.take_replies()
    assert len(Client.decode(reply, ApiKey.DESCRIBE_GROUPS, 5).groups) == 1


def test_a_request_with_too_many_elements_closes_the_connection() -> None:
    patient = Patient()
    assert patient.client.send(m.DescribeGroupsRequest(groups=["g"] * (ELEMENTS_MAX + 1)), 5) == []
    patient.run_chore()
    assert patient.broker.take_replies() == [Reply(1, None, close=True)]


def test_the_paused_request_of_a_closed_connection_is_dropped() -> None:
    patient = Patient()
    patient.is_over = True
    patient.client.send(names(50), 9)
    patient.broker.connection_closed(1, NOW_MS)
    patient.is_over = False
    patient.broker.tick(NOW_MS)
    assert patient.broker.next_deadline_ms() != 0
    assert not patient.chores
    assert patient.broker.take_replies() == []


def test_a_handler_that_raises_between_two_pieces_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    patient = Patient()

    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    patient.client.ask(names(1), 9)
    monkeypatch.setitem(patient.broker.dispatcher._handlers, ApiKey.METADATA, broken)
    assert patient.client.send(names(50), 9) == [Reply(1, None, close=True)]
    assert patient.broker.services.internal_errors.counts == {"a request": 1}
    assert "RuntimeError: a bug" in caplog.text


def request_of(body: Any, key: ApiKey, version: int) -> Request:
    return Request(ConnectionContext(1), key, version, 7, "test", body, NOW_MS)


def in_pieces(broker: Broker, body: Any, key: ApiKey, version: int) -> Any:
    """Return the response of a request handled in pieces, and the responses to the pieces."""
    request = request_of(body, key, version)
    cut = cut_of(request)
    assert cut is not None
    handler = broker.services.apis[key].load(broker.services)
    broker.services.long_requests.start(
        request,
        handle_in_pieces(
            request, handler, cut, NOW_MS, replies=broker.services.replies, refusals=broker.services.refusals
        ),
        NOW_MS,
    )
    (reply,) = broker.take_replies()
    return Client.decode(reply, key, version)


def test_a_topic_that_is_cut_is_one_topic_in_the_response() -> None:
    broker = start()
    offsets = m.ListOffsetsRequest
    topics = [
        offsets.ListOffsetsTopic(
            name=name,
            partitions=[offsets.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)],
        )
        for name, count in (("small", 3), ("large", 1_000), ("last", 2))
    ]
    response = in_pieces(broker, offsets(replica_id=-1, topics=topics), ApiKey.LIST_OFFSETS, 7)
    assert [topic.name for topic in response.topics] == ["small", "large", "last"]
    assert [one.partition_index for one in response.topics[1].partitions] == list(range(1_000))


def test_groups_with_long_names_and_no_topics_are_all_answered() -> None:
    broker = start()
    Client(broker).ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    fetch = m.OffsetFetchRequest
    groups = [f"{number}" * 9_000 for number in range(10, 40)]
    body = fetch(groups=[fetch.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups])
    response = in_pieces(broker, body, ApiKey.OFFSET_FETCH, 8)
    assert [group.group_id for group in response.groups] == groups


def test_a_repeated_resource_is_described_once() -> None:
    broker = start()
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1")
    body = m.DescribeConfigsRequest(resources=[resource] * 5_000)
    response = in_pieces(broker, body, ApiKey.DESCRIBE_CONFIGS, 4)
    assert [one.resource_name for one in response.results] == ["1"]


def test_a_topic_named_twice_in_a_long_request_is_refused_as_in_a_short_one() -> None:
    broker = start()
    creatable = m.CreateTopicsRequest.CreatableTopic
    topics = [creatable(name=f"t{number % 150}", num_partitions=1, replication_factor=1) for number in range(200)]
    response = in_pieces(broker, m.CreateTopicsRequest(topics=topics, timeout_ms=1_000), ApiKey.CREATE_TOPICS, 7)
    codes = {topic.name: topic.error_code for topic in response.topics}
    assert len(codes) == 150
    assert {codes[f"t{number}"] for number in range(50)} == {ErrorCode.INVALID_REQUEST}
    assert {codes[f"t{number}"] for number in range(50, 150)} == {ErrorCode.NONE}


def test_a_response_that_cannot_be_encoded_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    broker = start()
    client = Client(broker)
    client.ask(names(1), 9)
    too_long = m.MetadataResponse(cluster_id="x" * 40_000)
    monkeypatch.setitem(broker.dispatcher._handlers, ApiKey.METADATA, lambda *_: too_long)
    assert client.send(names(1), 9) == [Reply(1, None, close=True)]
    assert "the response cannot be encoded" in caplog.text
    assert Client(broker, connection_id=2).ask(m.ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_steps_can_be_run_without_a_pause() -> None:
    def steps() -> Any:
        first = yield
        second = yield
        return first + second

    assert run_steps(steps(), 21) == 42
