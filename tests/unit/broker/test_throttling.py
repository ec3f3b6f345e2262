"""Client quotas of the broker: the counted costs, the throttle time in responses, and the pauses of connections."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import Reply
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from tailrace.records.builder import BatchBuilder
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start

PRODUCE, FETCH, REQUEST, MUTATION = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)


class Work:
    """The clock of what requests take; each look at it takes `step_ms`."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.step_ms = 0

    def __call__(self) -> int:
        self.now_ns += self.step_ms * 1_000_000
        return self.now_ns


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def client(work: Work) -> Client:
    client = Client(start(work_ns=work))
    assert create(client, "orders", 1).topics[0].error_code == 0
    return client


def set_quota(client: Client, key: str, value: float | None, **names: str | None) -> None:
    entity = [
        AlterClientQuotasRequest.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in names.items()
    ]
    op = AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
    entry = AlterClientQuotasRequest.EntryData(entity=entity, ops=[op])
    answer = client.ask(AlterClientQuotasRequest(entries=[entry]), 1)
    assert answer.entries[0].error_code == 0, answer.entries[0].error_message


def create(client: Client, name: str, partitions: int, version: int = 7) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return client.ask(CreateTopicsRequest(topics=[topic]), version)


def produced(size: int, acks: int = 1, topic: str = "orders") -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(NOW_MS, b"k", b"v" * size)
    part = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[part])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def fetched(offset: int = 0, wait_ms: int = 0, **fields: Any) -> FetchRequest:
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000_000)
    topics = [FetchRequest.FetchTopic(topic="orders", partitions=[part])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=50_000_000, topics=topics, **fields)


def pause_of(client: Client, request: Any, version: int) -> int:
    """Return the throttle time, which is the same in the response and for the server."""
    (reply,) = client.send(request, version)
    answer = Client.decode(reply, request.SCHEMA.api_key, version)
    assert answer.throttle_time_ms == reply.throttle_ms
    return reply.throttle_ms


def records_of(client: Client, request: FetchRequest) -> bytes:
    """Return the records of a consumer that waits for its pauses."""
    for _ in range(20):
        answer = client.ask(request, 12)
        if not answer.throttle_time_ms:
            return bytes(answer.responses[0].partitions[0].records)
        assert answer.responses == []
        client.now_ms += answer.throttle_time_ms
        request.session_epoch += request.session_id > 0
    raise AssertionError("the consumer is throttled without end")


def size_of(client: Client, request: Any, version: int) -> int:
    return len(request.encode(version)) + 8 + 2 + len(client.client_id or "") + 1  # a flexible header


def test_without_quotas_nothing_is_measured(client: Client, work: Work) -> None:
    work.step_ms = 1
    assert pause_of(client, produced(100_000), 12) == 0
    assert (work.now_ns, client.broker.services.throttling.is_on) == (0, False)


def test_producer_byte_rate_counts_the_whole_request(client: Client) -> None:
    set_quota(client, PRODUCE, 1000, client_id="test")
    request = produced(20_000)
    size = size_of(client, request, 12)
    assert pause_of(client, request, 12) == size - 10_000  # 1000/s over ten seconds are free
    assert pause_of(client, request, 12) == 2 * size - 10_000


def test_the_records_of_a_throttled_producer_are_appended(client: Client) -> None:
    set_quota(client, PRODUCE, 10, client_id="test")
    for offset in range(3):
        answer = client.ask(produced(5000), 12)
        assert answer.throttle_time_ms > 0
        assert answer.responses[0].partition_responses[0].base_offset == offset


def test_a_produce_with_acks_0_pauses_the_connection_without_a_response(client: Client) -> None:
    set_quota(client, PRODUCE, 1000, client_id="test")
    (reply,) = client.send(produced(20_000, acks=0), 12)
    assert (reply.parts, reply.close) == (None, False)
    assert reply.throttle_ms > 9000


def test_a_produce_with_acks_0_is_not_throttled_by_request_percentage(client: Client, work: Work) -> None:
    set_quota(client, REQUEST, 1, client_id="test")
    work.step_ms = 1000
    (reply,) = client.send(produced(100, acks=0), 12)
    assert reply.throttle_ms == 0


def test_a_refused_produce_counts_towards_the_quota(client: Client) -> None:
    set_quota(client, PRODUCE, 1000, client_id="test")
    assert pause_of(client, produced(20_000, topic="no-such-topic"), 12) > 9000
    assert pause_of(client, produced(20_000, acks=7), 12) > 29_000


def test_a_quota_does_not_throttle_other_clients(client: Client) -> None:
    other = Client(client.broker, connection_id=2, client_id="other")
    nameless = Client(client.broker, connection_id=3, client_id=None)
    set_quota(client, PRODUCE, 1, client_id="test")
    set_quota(client, PRODUCE, 1e9, client_id=None)
    assert pause_of(client, produced(1000), 12) > 0
    assert pause_of(other, produced(1000), 12) == 0
    assert pause_of(nameless, produced(1000), 12) == 0


def test_connections_with_one_client_id_share_its_quota(client: Client) -> None:
    second = Client(client.broker, connection_id=2)
    set_quota(client, PRODUCE, 1000, client_id="test")
    assert pause_of(client, produced(9000), 12) == 0
    assert pause_of(second, produced(9000), 12) > 7000


def test_quotas_of_user_anonymous_apply_to_unauthenticated_clients(client: Client) -> None:
    set_quota(client, PRODUCE, 1, user="ANONYMOUS")
    assert pause_of(client, produced(1000), 12) > 0
    client.context.principal = "User:alice:smith"
    assert pause_of(client, produced(1000), 12) == 0
    set_quota(client, PRODUCE, 1, user="alice:smith")
    assert pause_of(client, produced(1000), 12) > 0


def test_a_removed_quota_no_longer_throttles(client: Client) -> None:
    set_quota(client, PRODUCE, 1, client_id="test")
    assert pause_of(client, produced(1000), 12) > 0
    set_quota(client, PRODUCE, None, client_id="test")
    assert pause_of(client, produced(1000), 12) == 0
    assert not client.broker.services.throttling.is_on


def test_quotas_are_in_force_after_a_restart() -> None:
    files = MemoryFiles()
    client = Client(start(files))
    create(client, "orders", 1)
    set_quota(client, PRODUCE, 1, client_id="test")
    client.broker.close(NOW_MS)
    again = Client(start(files))
    assert pause_of(again, produced(1000), 12) > 0


def test_a_throttled_consumer_gets_its_records_after_the_pause(client: Client) -> None:
    for _ in range(5):
        client.ask(produced(4000), 12)
    set_quota(client, FETCH, 1000, client_id="test")
    assert len(records_of(client, fetched())) == 10_000, "a larger response would always be throttled"
    (reply,) = client.send(fetched(offset=2), 12)
    throttled = Client.decode(reply, 1, 12)
    assert (throttled.responses, throttled.throttle_time_ms) == ([], reply.throttle_ms)
    assert 9000 < reply.throttle_ms < 11_000
    client.now_ms += reply.throttle_ms
    assert len(records_of(client, fetched(offset=2))) == 10_000


def test_records_that_were_not_sent_do_not_count_towards_the_quota(client: Client) -> None:
    for _ in range(3):
        client.ask(produced(9000), 12)
    set_quota(client, FETCH, 1000, client_id="test")
    assert records_of(client, fetched())
    pauses = {pause_of(client, fetched(offset=1), 12) for _ in range(5)}
    assert len(pauses) == 1


def test_a_follower_has_no_client_quota(client: Client) -> None:
    client.ask(produced(4000), 12)
    set_quota(client, FETCH, 1, client_id="test")
    set_quota(client, REQUEST, 0.001, client_id="test")
    (reply,) = client.send(fetched(replica_id=7), 12)
    assert reply.throttle_ms == 0


def test_a_throttled_response_does_not_change_the_fetch_session(client: Client) -> None:
    client.ask(produced(4000), 12)
    client.ask(produced(4000), 12)
    set_quota(client, FETCH, 1000, client_id="test")
    opened = client.ask(fetched(session_epoch=0), 12)
    assert len(opened.responses[0].partitions[0].records) > 8000
    next_one = fetched(offset=1, session_id=opened.session_id, session_epoch=1)
    (reply,) = client.send(next_one, 12)
    throttled = Client.decode(reply, 1, 12)
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    assert reply.throttle_ms > 0
    client.now_ms += reply.throttle_ms
    again = FetchRequest(session_id=opened.session_id, session_epoch=2, max_wait_ms=0, min_bytes=1)
    assert len(records_of(client, again)) > 4000


def test_request_percentage_is_the_share_of_a_threads_time(client: Client, work: Work) -> None:
    set_quota(client, REQUEST, 2, client_id="test")
    work.step_ms = 100  # per reading of the clock: one at the start of a request, one at its response
    assert pause_of(client, ApiVersionsRequest(), 0) == 0  # 1 %: 100 ms of ten seconds
    assert pause_of(client, MetadataRequest(topics=[]), 9) == 0
    assert pause_of(client, MetadataRequest(topics=[]), 9) == 1000, "but no longer than quota.window.size.seconds"


def test_versions_without_throttle_time_pause_the_connection_too(client: Client, work: Work) -> None:
    set_quota(client, REQUEST, 0.001, client_id="test")
    work.step_ms = 100
    (reply,) = client.send(MetadataRequest(topics=[]), 1)
    assert reply.parts is not None
    assert reply.throttle_ms == 1000


def test_waiting_time_does_not_count_towards_request_percentage(client: Client, work: Work) -> None:
    set_quota(client, REQUEST, 1, client_id="test")
    work.step_ms = 1
    assert client.send(fetched(wait_ms=5000), 12) == []
    work.step_ms = 0
    work.now_ns += 60_000_000_000
    client.broker.tick(NOW_MS + 5000)
    (reply,) = client.broker.take_replies()
    assert reply.throttle_ms == 0


def test_a_producer_is_not_charged_for_the_fetches_that_it_completes(client: Client, work: Work) -> None:
    waiting = Client(client.broker, connection_id=2, client_id="waiting")
    set_quota(client, REQUEST, 1, client_id="test")
    work.step_ms = 40  # the waiting request took 40 ms at its start, 0.4 % of ten seconds
    assert waiting.send(fetched(wait_ms=5000), 12) == []
    replies = client.send(produced(100), 12)
    assert {reply.connection_id: reply.throttle_ms for reply in replies} == {1: 0, 2: 0}
    work.step_ms = 100
    replies = client.send(produced(100), 12)
    assert [reply.throttle_ms for reply in replies] == [1000]


def test_the_time_of_a_closed_connection_is_forgotten(client: Client) -> None:
    set_quota(client, REQUEST, 1, client_id="test")
    assert client.send(fetched(wait_ms=5000), 12) == []
    assert client.broker.services.throttling._parked_ns
    client.broker.connection_closed(1, NOW_MS)
    assert not client.broker.services.throttling._parked_ns


def mutation(client: Client, version: int, name: str, partitions: int = 30) -> tuple[int, int]:
    answer = create(client, name, partitions, version)
    return answer.topics[0].error_code, answer.throttle_time_ms


def test_topic_creation_above_the_mutation_quota_is_refused(client: Client) -> None:
    set_quota(client, MUTATION, 2, client_id="test")
    assert mutation(client, 6, "first") == (0, 0)  # 30 of 22
    assert mutation(client, 6, "second") == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 4000)
    assert "second" not in client.broker.services.controller.image.topics
    client.now_ms += 4000
    assert mutation(client, 6, "second") == (0, 0)


def test_validate_only_counts_towards_the_mutation_quota(client: Client) -> None:
    set_quota(client, MUTATION, 2, client_id="test")
    topic = CreateTopicsRequest.CreatableTopic(name="first", num_partitions=30, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic], validate_only=True), 6).topics[0].error_code == 0
    assert mutation(client, 6, "second")[0] == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_old_clients_above_the_mutation_quota_get_their_topics_and_pause(client: Client) -> None:
    set_quota(client, MUTATION, 2, client_id="test")
    assert mutation(client, 5, "first") == (0, 4000)
    assert mutation(client, 5, "second") == (0, 19_000)
    assert {"first", "second"} <= set(client.broker.services.controller.image.topics)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_deleted_partitions_count_towards_the_mutation_quota(client: Client, version: int) -> None:
    for name in ("a", "b"):
        create(client, name, 30)
    set_quota(client, MUTATION, 2, client_id="test")
    request = DeleteTopicsRequest(topic_names=["a", "b"])
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("a", "b")])
    answer = client.ask(request, version)
    codes = [one.error_code for one in answer.responses]
    if version >= 5:
        assert sorted(codes) == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert answer.throttle_time_ms == 4000
    else:
        assert (codes, answer.throttle_time_ms) == ([0, 0], 19_000)


@pytest.mark.parametrize("version", [2, 3])
def test_added_partitions_count_towards_the_mutation_quota(client: Client, version: int) -> None:
    set_quota(client, MUTATION, 2, client_id="test")

    def add(count: int) -> tuple[int, int]:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name="orders", count=count, assignments=None)
        answer = client.ask(CreatePartitionsRequest(topics=[topic]), version)
        return answer.results[0].error_code, answer.throttle_time_ms

    if version >= 3:
        assert add(31) == (0, 0)
        assert add(33) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 4000)
    else:
        assert add(31) == (0, 4000)
        assert add(33) == (0, 5000)


def test_auto_created_topics_count_towards_the_mutation_quota(client: Client) -> None:
    set_quota(client, MUTATION, 0.5, client_id="test")
    for name in "abcdefgh":
        topic = MetadataRequest.MetadataRequestTopic(name=name)
        answer = client.ask(MetadataRequest(topics=[topic], allow_auto_topic_creation=True), 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {*"abcdef"} <= set(client.broker.services.controller.image.topics)
    assert "h" not in client.broker.services.controller.image.topics


def windows_of(broker: Broker, size: int) -> Reply:
    client = Client(broker)
    create(client, "orders", 1)
    set_quota(client, PRODUCE, 1000, client_id="test")
    (reply,) = client.send(produced(size), 12)
    return reply


def test_quota_window_settings_are_applied() -> None:
    settings = {"quota.window.num": "3", "quota.window.size.seconds": "2"}
    assert windows_of(start(static=settings), 3800).throttle_ms == 0  # 1000/s, (3 - 1) · 2 s
    assert 0 < windows_of(start(static=settings), 4200).throttle_ms < 1000
    settings = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "3"}
    client = Client(start(static=settings))
    set_quota(client, MUTATION, 1, client_id="test")
    assert mutation(client, 5, "topic", partitions=10) == (0, 4000)
