"""A request of many elements does not hold the loop: the work between two pauses is bounded."""

from __future__ import annotations

from collections import Counter
from copy import copy
from typing import Any, Final

import pytest

from tailrace.broker.handling.request_decoder import ELEMENTS_AT_ONCE
from tailrace.coordinator.transactions.transaction import Transaction
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.shares.state.persisted_state import SharePartitionKey
from tests.support.api_cases.common import batch
from tests.support.memory_node import NOW_MS, Client
from tests.support.stretches import LINES_MAX, Stretches

MANY: Final = 30_000

pytestmark = pytest.mark.long


def frame_of(request: Any, version: int) -> bytes:
    key = request.SCHEMA.api_key
    return write_request_header(RequestHeader(key, version, 1, "test")) + request.encode(version)


def ask(broker: Stretches, request: Any, version: int) -> Any:
    """Return the response, and check that no stretch of the request is too long.

    An empty request goes first, so that modules and codecs which are loaded on first use are not counted.
    """
    broker.send(frame_of(type(request)(), version))
    (reply,) = broker.send(frame_of(request, version))
    assert broker.longest < LINES_MAX
    return Client.decode(reply, request.SCHEMA.api_key, version)


def create_topic(broker: Stretches, partitions: int = 1, name: str = "topic") -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    broker.send(frame_of(m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7))


def partitions_to(count: int) -> m.CreatePartitionsRequest:
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic(name="topic", count=count, assignments=None)
    return m.CreatePartitionsRequest(topics=[topic], timeout_ms=1_000)


def fetch_of(topics: int, partitions: int, **fields: Any) -> m.FetchRequest:
    fetch = m.FetchRequest
    asked = [fetch.FetchPartition(partition=0, partition_max_bytes=100)] * partitions
    return fetch(topics=[fetch.FetchTopic(topic="unknown", partitions=asked)] * topics, max_wait_ms=0, **fields)


@pytest.mark.parametrize("version", [11, 18])
def test_a_fetch_of_many_topics_without_partitions_pauses(version: int) -> None:
    assert ask(Stretches(), fetch_of(MANY, 0), version).responses == []


def test_a_fetch_of_one_partition_many_times_pauses() -> None:
    (topic,) = ask(Stretches(), fetch_of(1, MANY), 11).responses
    assert len(topic.partitions) == 1


def test_a_fetch_of_many_partitions_pauses() -> None:
    request = fetch_of(1, 0)
    request.topics[0].partitions = [m.FetchRequest.FetchPartition(partition=number) for number in range(MANY)]
    (topic,) = ask(Stretches(), request, 11).responses
    assert len(topic.partitions) == MANY


def test_the_refusal_of_a_fetch_of_many_partitions_pauses() -> None:
    broker = Stretches()
    create_topic(broker)
    request = fetch_of(MANY // 2, 1, isolation_level=9)
    request.topics[0] = m.FetchRequest.FetchTopic(topic="topic", partitions=request.topics[0].partitions)
    response = ask(broker, request, 11)
    assert len(response.responses) == MANY // 2


def produce_of(topics: int, partitions: int, records: bytes | None, **fields: Any) -> m.ProduceRequest:
    produce = m.ProduceRequest
    parts = [produce.PartitionProduceData(index=0, records=records)] * partitions
    data = [produce.TopicProduceData(name="topic", partition_data=parts)] * topics
    return produce(topic_data=data, timeout_ms=1_000, **fields)


def error_codes(response: m.ProduceResponse) -> Counter[int]:
    return Counter(part.error_code for topic in response.responses for part in topic.partition_responses)


@pytest.mark.parametrize("version", [8, 9])
def test_a_produce_of_many_partitions_pauses(version: int) -> None:
    broker = Stretches()
    create_topic(broker)
    response = ask(broker, produce_of(1, 3_000, batch(NOW_MS, b"value"), acks=1), version)
    assert error_codes(response) == {ErrorCode.NONE: 3_000}
    offsets = [part.base_offset for part in response.responses[0].partition_responses]
    assert offsets == list(range(3_000))


def test_a_produce_of_many_unknown_partitions_pauses() -> None:
    response = ask(Stretches(), produce_of(MANY, 1, None, acks=-1), 8)
    assert error_codes(response) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: MANY}


def test_the_refusal_of_a_produce_of_many_partitions_pauses() -> None:
    response = ask(Stretches(), produce_of(1, 2 * MANY, None, acks=5), 8)
    assert error_codes(response) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 2 * MANY}


def test_a_transactional_produce_of_many_partitions_pauses() -> None:
    broker = Stretches()
    create_topic(broker)
    records = batch(NOW_MS, b"value", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce_of(1, 4_000, records, acks=-1, transactional_id="transaction")
    for number, part in enumerate(parts := [copy(one) for one in request.topic_data[0].partition_data]):
        part.index = number
    request.topic_data[0].partition_data = parts
    codes = error_codes(ask(broker, request, 11))
    assert codes[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == 3_999


def test_a_large_produce_behind_a_small_one_is_answered_after_it() -> None:
    broker = Stretches()
    create_topic(broker)
    small = frame_of(produce_of(1, 1, batch(NOW_MS, b"value"), acks=1), 9)
    large = frame_of(produce_of(1, ELEMENTS_AT_ONCE + 1, None, acks=1), 9)
    assert broker.broker.handle(memoryview(bytearray(small)), broker.client.context, NOW_MS)
    first, second = [*broker.send(large), *broker.wait()]
    codes = [error_codes(Client.decode(one, ApiKey.PRODUCE, 9)) for one in (first, second)]
    assert [sum(one.values()) for one in codes] == [1, ELEMENTS_AT_ONCE + 1]


def test_a_topic_of_many_partitions_is_created_with_pauses() -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name="topic", num_partitions=2_000, replication_factor=1)
    broker = Stretches()
    (created,) = ask(broker, m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7).topics
    assert (created.error_code, created.num_partitions) == (ErrorCode.NONE, 2_000)
    assert sum(1 for _ in broker.broker.services.partitions) == 2_000


def test_many_partitions_are_added_with_pauses() -> None:
    broker = Stretches()
    create_topic(broker)
    (result,) = ask(broker, partitions_to(2_000), 3).results
    assert result.error_code == ErrorCode.NONE
    assert sum(1 for _ in broker.broker.services.partitions) == 2_000


def test_the_refusal_of_many_topics_pauses() -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name="topic", num_partitions=1, replication_factor=1)
    response = ask(Stretches(), m.CreateTopicsRequest(topics=[topic] * MANY, timeout_ms=1_000), 4)
    assert Counter(one.error_code for one in response.topics) == {ErrorCode.POLICY_VIOLATION: MANY}


def test_partitions_are_decided_again_if_the_metadata_changes_during_a_pause() -> None:
    broker = Stretches()
    create_topic(broker)
    broker.broker.handle(memoryview(bytearray(frame_of(partitions_to(600), 3))), broker.client.context, NOW_MS)
    other = Client(broker.broker, connection_id=2)
    other.send(partitions_to(50), 3)
    replies = [reply for reply in broker.wait() if reply.connection_id == 1] or broker.wait()
    assert Client.decode(replies[-1], ApiKey.CREATE_PARTITIONS, 3).results[0].error_code == ErrorCode.NONE
    assert sorted(broker.broker.services.controller.image.topics["topic"].partitions) == list(range(600))


def test_a_request_is_refused_if_the_metadata_changes_during_every_attempt() -> None:
    broker = Stretches()
    create_topic(broker)
    controller = broker.broker.services.local_controller
    assert controller is not None
    steps = controller.topics.begin_create_partitions(
        partitions_to(600), NOW_MS, may_alter=lambda _: True, charge=lambda _: None
    )
    response = None
    for number in range(1_000):
        try:
            steps.send(None if not number else NOW_MS)  # type: ignore[arg-type]
        except StopIteration as end:
            response = end.value
            break
        controller.allocate_producer_ids(NOW_MS)
    assert response is not None
    assert [one.error_code for one in response.results] == [ErrorCode.REQUEST_TIMED_OUT]
    assert len(controller.image.topics["topic"].partitions) == 1


def test_writing_the_markers_of_a_transaction_of_many_partitions_pauses() -> None:
    broker = Stretches({"transaction.state.log.num.partitions": "1"})
    create_topic(broker, 4_000)

    def answer(request: Any, version: int) -> Any:
        (reply,) = broker.send(frame_of(request, version))
        return Client.decode(reply, request.SCHEMA.api_key, version)

    answer(m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
    who = answer(m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=10_000), 4)
    producer = {"producer_id": who.producer_id, "producer_epoch": who.producer_epoch}
    add = m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
    )
    add.v3_and_below_topics = [add.AddPartitionsToTxnTopic(name="topic", partitions=list(range(4_000)))]
    answer(add, 3)
    assert not answer(m.EndTxnRequest(transactional_id="t", committed=True, **producer), 3).error_code
    longest, ticks = broker.longest, 0
    while answer(m.DescribeTransactionsRequest(transactional_ids=["t"]), 0).transaction_states[0].topics:
        longest, ticks = max(longest, broker.longest), ticks + 1
        broker.tick()
        assert ticks < 1_000
    assert longest < LINES_MAX


def test_the_deletion_of_topics_with_many_partitions_pauses() -> None:
    broker = Stretches()
    topic = m.CreateTopicsRequest.CreatableTopic
    topics = [topic(name=f"topic-{number}", num_partitions=1_500, replication_factor=1) for number in range(4)]
    for one in topics:
        broker.send(frame_of(m.CreateTopicsRequest(topics=[one], timeout_ms=1_000), 7))
    delete = m.DeleteTopicsRequest
    names = ["topic-0", "topic-1", "topic-2", "topic-3", "topic-3", "unknown"]
    request = delete(topics=[delete.DeleteTopicState(name=name) for name in names], timeout_ms=1_000)
    response = ask(broker, request, 6)
    codes = {one.name: one.error_code for one in response.responses}
    assert codes == {
        "topic-0": 0,
        "topic-1": 0,
        "topic-2": 0,
        "topic-3": ErrorCode.INVALID_REQUEST,
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_describe_producers_that_repeats_a_partition_gets_one_answer_for_it() -> None:
    broker = Stretches()
    create_topic(broker)
    log = broker.broker.services.partitions.find(TopicPartition("topic", 0)).log
    for number in range(3_000):
        data = batch(NOW_MS, b"v", producer_id=number, producer_epoch=0, base_sequence=0)
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    request = m.DescribeProducersRequest()
    request.topics = [request.TopicRequest(name="topic", partition_indexes=[0] * 2_000)]
    (topic,) = ask(broker, request, 0).topics
    (partition,) = topic.partitions
    assert len(partition.active_producers) == 3_000


def test_transactions_that_time_out_together_are_aborted_with_pauses() -> None:
    broker = Stretches({"transaction.state.log.num.partitions": "1"})
    create_topic(broker)
    ids = [f"id-{number}" for number in range(200)]
    ask(broker, m.FindCoordinatorRequest(key=ids[0], key_type=1), 2)
    for one in ids:
        producer = ask(broker, m.InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=1_000), 4)
        add = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=one,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
        )
        add.v3_and_below_topics = [add.AddPartitionsToTxnTopic(name="topic", partitions=[0])]
        ask(broker, add, 3)
    assert _open_transactions(broker) == 200
    broker.longest = 0
    for _ in range(60):
        broker.tick(NOW_MS + 60_000)
    longest = broker.longest
    assert _open_transactions(broker) == 0
    assert longest < LINES_MAX / 5


def test_the_creation_of_an_acl_does_not_look_at_the_existing_ones() -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    broker = Stretches({"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"})
    creation = m.CreateAclsRequest.AclCreation

    def create(names: range) -> int:
        acls = [
            creation(
                resource_type=2,
                resource_name=f"topic-{number}",
                resource_pattern_type=3,
                principal="User:user",
                host="*",
                operation=3,
                permission_type=3,
            )
            for number in names
        ]
        response = ask(broker, m.CreateAclsRequest(creations=acls), 3)
        assert not any(one.error_code for one in response.results)
        return len(broker.broker.services.controller.image.acls)

    assert create(range(3_000)) == 3_000
    assert create(range(2_999, 3_001)) == 3_001
    assert broker.longest < LINES_MAX / 50


def test_the_acknowledgement_of_thousands_of_single_records_pauses() -> None:
    broker = Stretches({"share.coordinator.state.topic.num.partitions": "1"})
    create_topic(broker, 4)
    create_topic(broker, 1, "__share_group_state")
    topic_id = broker.broker.services.controller.image.topics["topic"].id
    for number in range(4):
        produced = m.ProduceRequest.PartitionProduceData(index=number, records=batch(NOW_MS, *[b"v"] * 1_000))
        data = [m.ProduceRequest.TopicProduceData(name="topic", partition_data=[produced])]
        broker.send(frame_of(m.ProduceRequest(acks=1, timeout_ms=1_000, topic_data=data), 9))
        broker.broker.services.share_coordinator.initialize(
            SharePartitionKey("group", topic_id, number), 0, 0, lambda *_: None, pytest.fail, NOW_MS
        )
    identity: dict[str, Any] = {"group_id": "group", "member_id": "member"}
    fetch = m.ShareFetchRequest(**identity, max_bytes=1 << 20, max_records=10_000, batch_size=1_000, max_wait_ms=1)
    fetch.topics = [fetch.FetchTopic(topic_id=topic_id, partitions=[])]
    fetch.topics[0].partitions = [fetch.FetchPartition(partition_index=number) for number in range(4)]
    acquired = 0
    while acquired < 4_000:
        (reply,) = broker.send(frame_of(fetch, 1))
        fetch.share_session_epoch += 1
        assert fetch.share_session_epoch < 20
        for topic in Client.decode(reply, ApiKey.SHARE_FETCH, 1).responses:
            found = [records for one in topic.partitions for records in one.acquired_records]
            acquired += sum(one.last_offset - one.first_offset + 1 for one in found)
    request = m.ShareAcknowledgeRequest(**identity, share_session_epoch=fetch.share_session_epoch)
    single = [request.AcknowledgementBatch(first_offset=n, last_offset=n, acknowledge_types=[1]) for n in range(1_000)]
    partitions = [request.AcknowledgePartition(partition_index=n, acknowledgement_batches=single) for n in range(4)]
    request.topics = [request.AcknowledgeTopic(topic_id=topic_id, partitions=partitions)]
    (reply,) = broker.send(frame_of(request, 1))
    (acknowledged,) = Client.decode(reply, ApiKey.SHARE_ACKNOWLEDGE, 1).responses
    assert [one.error_code for one in acknowledged.partitions] == [0] * 4
    assert broker.longest < LINES_MAX * 2 / 3


@pytest.mark.parametrize("wait_ms", [20_000, 3_600_001], ids=["timeouts", "expiry"])
def test_a_search_among_all_transactional_ids_pauses(wait_ms: int) -> None:
    broker = Stretches({"transaction.state.log.num.partitions": "1"})
    ask(broker, m.FindCoordinatorRequest(key="first", key_type=1), 2)
    ask(broker, m.InitProducerIdRequest(transactional_id="first", transaction_timeout_ms=1_000), 4)
    shard = broker.broker.services.transactions.coordinator.runtime.shard(0)
    facts = shard.transactions["first"].facts
    for number in range(10_000):
        shard.transactions[f"id-{number}"] = Transaction(f"id-{number}", facts)
    broker.longest = 0
    broker.tick(NOW_MS + wait_ms)
    assert broker.longest < LINES_MAX / 10


def _open_transactions(broker: Stretches) -> int:
    states = ask(broker, m.ListTransactionsRequest(state_filters=["Ongoing"]), 0).transaction_states
    return len(states)
