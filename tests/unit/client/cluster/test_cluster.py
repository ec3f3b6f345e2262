from __future__ import annotations

import pytest

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.errors import (
    AnswerTimedOut,
    ClientError,
    ConnectionLost,
    Refused,
    UnknownBroker,
    UnknownPartition,
    UnknownTopic,
    Unreachable,
)
from tailrace.client.network.address import Address
from tailrace.client.offsets import FoundOffset, latest_offsets
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from tests.unit.client.fakes import HANG_UP, SILENCE, FakeCluster

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def list_offsets(cluster: FakeCluster, node_id: int) -> None:
    """Let a broker respond as a leader that knows its own partitions and their epoch."""

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            leaders = cluster.topics[topic.name].leaders
            partitions = []
            for one in topic.partitions:
                is_leader = leaders[one.partition_index] == node_id
                code = ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
                if is_leader and one.current_leader_epoch != cluster.topics[topic.name].leader_epoch:
                    code = ErrorCode.FENCED_LEADER_EPOCH
                partitions.append(
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, error_code=code, offset=100 * node_id + one.partition_index
                    )
                )
            topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    cluster.brokers[node_id].handlers[ApiKey.LIST_OFFSETS] = answer


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster(brokers=2)
    cluster.add_topic("t", 1, 2, 1)
    for node_id in cluster.brokers:
        list_offsets(cluster, node_id)
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, lambda request, version: DescribeClusterResponse(cluster_id="c"))
    return cluster


def asked(cluster: FakeCluster, api_key: ApiKey) -> list[int]:
    """Return the brokers that received requests."""
    return [one.node_id for one in cluster.asked if one.api_key == api_key]


# ------------------------------------------------------------------------------------------------------ first requests


def test_the_client_connects_with_its_first_request(cluster: FakeCluster) -> None:
    cluster.client()
    assert cluster.opened == 0


def test_an_unreachable_bootstrap_address_is_reported_without_retries(cluster: FakeCluster) -> None:
    for broker in cluster.brokers.values():
        broker.is_up = False
    with pytest.raises(Unreachable, match="kafka:9002"):
        cluster.client().topic("t")
    assert cluster.clock.pauses == []


def test_the_second_bootstrap_address_is_used_if_the_first_is_unreachable(cluster: FakeCluster) -> None:
    cluster.brokers[1].is_up = False
    client = cluster.client((Address("nowhere", 1), *cluster.bootstrap))
    assert list(client.metadata.brokers) == [2]
    assert cluster.clock.pauses == []


def test_brokers_and_topics_are_cached(cluster: FakeCluster) -> None:
    client = cluster.client()
    assert client.metadata.cluster_id == "fake"
    assert [one.leader for one in client.topic("t").partitions] == [1, 2, 1]
    before = cluster.metadata_requests
    assert client.topic("t").topic_partitions == [T0, T1, T2]
    assert client.metadata.controller_id == 1
    assert cluster.metadata_requests == before
    cluster.topics["t"].leaders.append(2)
    assert len(client.topic("t", fresh=True).partitions) == 4


def test_topics_are_returned_sorted_by_name(cluster: FakeCluster) -> None:
    cluster.add_topic("a", 1)
    client = cluster.client()
    assert [topic.name for topic in client.topics()] == ["a", "t"]


def test_a_missing_topic_is_queried_again_for_the_grace_period(cluster: FakeCluster) -> None:
    client = cluster.client()
    began = cluster.clock.now
    with pytest.raises(UnknownTopic, match="there is no topic 'other'"):
        client.topic("other")
    assert 0.5 <= cluster.clock.now - began < 0.6

    def appear(seconds: float) -> None:
        cluster.add_topic("other", 1)

    cluster.clock.sleep = appear  # type: ignore[method-assign]
    assert client.topic("other").name == "other"


def test_an_unauthorized_topic_is_refused_without_retries(cluster: FakeCluster) -> None:
    cluster.topics["t"].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(Refused, match="TOPIC_AUTHORIZATION_FAILED"):
        cluster.client().topic("t")
    assert cluster.clock.pauses == []


# ------------------------------------------------------------------------------------------------- any broker, leaders


def test_each_broker_gets_one_connection(cluster: FakeCluster) -> None:
    client = cluster.client()
    for _ in range(3):
        client.ask_any(DescribeClusterRequest())
        latest_offsets(client, [T0, T1, T2])
    assert cluster.opened == 2


def test_each_leader_gets_one_request_for_all_its_partitions(cluster: FakeCluster) -> None:
    assert latest_offsets(cluster.client(), [T2, T1, T0]) == {T2: 102, T1: 201, T0: 100}
    assert asked(cluster, ApiKey.LIST_OFFSETS) == [1, 2]


def test_requests_to_all_leaders_are_sent_before_the_first_response_is_read(cluster: FakeCluster) -> None:
    order: list[str] = []

    def build(leaders: list[LedPartition]) -> ListOffsetsRequest:
        order.append("asked")
        return ListOffsetsRequest()

    def read(answer: ListOffsetsResponse, leaders: list[LedPartition]) -> list[PartitionAnswer]:
        order.append("answered")
        return [PartitionAnswer(leader.partition, 1) for leader in leaders]

    cluster.client().ask_leaders([T0, T1], build, read)
    assert order == ["asked", "asked", "answered", "answered"]


def test_the_new_leader_is_found_after_a_leader_change(cluster: FakeCluster) -> None:
    client = cluster.client()
    client.topic("t")
    cluster.topics["t"].leaders = [1, 1, 2]
    cluster.topics["t"].leader_epoch = 1
    assert latest_offsets(client, [T0, T1, T2]) == {T0: 100, T1: 101, T2: 202}
    assert len(cluster.clock.pauses) == 1


def test_only_failed_partitions_are_retried(cluster: FakeCluster) -> None:
    client = cluster.client()
    client.topic("t")
    cluster.topics["t"].leaders = [1, 2, 2]
    latest_offsets(client, [T0, T1, T2])
    partitions = [(one.node_id, [p.partition_index for p in one.message.topics[0].partitions]) for one in cluster.asked]
    assert partitions == [(1, [0, 2]), (2, [1]), (2, [2])]


def test_a_partition_without_a_leader_is_retried_until_the_timeout(cluster: FakeCluster) -> None:
    cluster.topics["t"].leaders[1] = -1
    client = cluster.client(total_timeout_ms=5000)
    with pytest.raises(Refused, match="t-1: the partition has no leader"):
        latest_offsets(client, [T0, T1])
    assert sum(cluster.clock.pauses) == pytest.approx(5.0)
    assert asked(cluster, ApiKey.LIST_OFFSETS) == [1]


def test_errors_are_returned_as_values_on_request(cluster: FakeCluster) -> None:
    def read(answer: ListOffsetsResponse, leaders: list[LedPartition]) -> list[PartitionAnswer]:
        error = Refused("t", ErrorCode.POLICY_VIOLATION)
        return [PartitionAnswer(one.partition, 5, error if one.partition == T0 else None) for one in leaders]

    def build(leaders: list[LedPartition]) -> ListOffsetsRequest:
        return ListOffsetsRequest()

    client = cluster.client()
    found = client.ask_leaders([T0, T1], build, read, errors_are_values=True)
    assert isinstance(found[T0], Refused)
    assert found[T1] == 5
    with pytest.raises(Refused, match="POLICY_VIOLATION"):
        client.ask_leaders([T0, T1], build, read)


def test_a_partition_that_the_response_omits_is_an_error(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.LIST_OFFSETS, lambda request, version: ListOffsetsResponse())
    with pytest.raises(Refused, match="kafka:9001 omitted the partition"):
        latest_offsets(cluster.client(), [T0])


def test_a_new_partition_is_found_and_a_missing_one_is_reported(cluster: FakeCluster) -> None:
    client = cluster.client()
    client.topic("t")
    cluster.topics["t"].leaders.append(2)
    assert latest_offsets(client, [TopicPartition("t", 3)])
    with pytest.raises(UnknownPartition, match="t has no partition 4; it has 0 to 3"):
        latest_offsets(client, [TopicPartition("t", 4)])


def test_topics_without_ids_are_requested_by_name(cluster: FakeCluster) -> None:
    def versions(name: str) -> list[int]:
        cluster.asked.clear()
        client = cluster.client()
        client.ask_leaders(
            [TopicPartition(name, 0)],
            lambda leaders: ListOffsetsRequest(),
            lambda answer, leaders: [PartitionAnswer(one.partition, 1) for one in leaders],
            version_max_without_ids=3,
        )
        return [one.version for one in cluster.asked]

    cluster.add_topic("old", 1, has_id=False)
    assert versions("old") == [3]
    assert versions("t") == [11]


# ------------------------------------------------------------------------------------------ failures and retries


def test_a_request_is_retried_after_a_lost_connection(cluster: FakeCluster) -> None:
    client = cluster.client()
    answers = [HANG_UP, SILENCE]
    real = cluster.brokers[2].handlers[ApiKey.LIST_OFFSETS]
    cluster.brokers[2].handlers[ApiKey.LIST_OFFSETS] = lambda request, version: (
        answers.pop(0) if answers else real(request, version)
    )
    assert latest_offsets(client, [T0, T1]) == {T0: 100, T1: 201}
    assert asked(cluster, ApiKey.LIST_OFFSETS) == [1, 2, 2, 2]
    assert len(cluster.clock.pauses) == 2


def test_an_idle_connection_that_the_broker_closed_is_replaced(cluster: FakeCluster) -> None:
    client = cluster.client()
    latest_offsets(client, [T0, T1])
    for broker in cluster.brokers.values():
        for connection in broker.connections:
            connection.is_ended = True
    assert latest_offsets(client, [T0, T1]) == {T0: 100, T1: 201}
    assert cluster.clock.pauses == []


def test_requests_succeed_after_a_restart_of_the_cluster(cluster: FakeCluster) -> None:
    client = cluster.client()
    latest_offsets(client, [T0, T1])
    for broker in cluster.brokers.values():
        broker.stop()
    real_sleep = cluster.clock.sleep

    def sleep(seconds: float) -> None:
        real_sleep(seconds)
        if len(cluster.clock.pauses) == 4:
            for broker in cluster.brokers.values():
                broker.is_up = True

    cluster.clock.sleep = sleep  # type: ignore[method-assign]
    assert latest_offsets(client, [T0, T1]) == {T0: 100, T1: 201}
    assert len(cluster.clock.pauses) >= 4


def test_a_cluster_that_stays_unreachable_times_out(cluster: FakeCluster) -> None:
    client = cluster.client(total_timeout_ms=3000)
    latest_offsets(client, [T0])
    for broker in cluster.brokers.values():
        broker.stop()
    began = cluster.clock.now
    with pytest.raises(Unreachable):
        latest_offsets(client, [T0])
    assert cluster.clock.now - began == pytest.approx(3.0, abs=1.0)


def test_an_unreachable_advertised_address_is_reported_with_its_broker(cluster: FakeCluster) -> None:
    cluster.brokers[1].handlers[ApiKey.METADATA] = lambda request, version: _moved(cluster, request)
    client = cluster.client(cluster.bootstrap[:1], total_timeout_ms=1000)
    words = "broker 2 cannot be reached at inside:9092, the address it advertises: connection refused"
    with pytest.raises(Unreachable, match=words):
        latest_offsets(client, [T1])


def _moved(cluster: FakeCluster, request: object) -> object:
    answer = cluster.metadata(request)
    answer.brokers[1].host, answer.brokers[1].port = "inside", 9092
    return answer


def test_an_unknown_broker_id_is_reported(cluster: FakeCluster) -> None:
    with pytest.raises(UnknownBroker, match="no active broker 7; active brokers: 1, 2"):
        cluster.client().ask_node(7, DescribeClusterRequest())


def test_an_interrupted_request_closes_its_connection(cluster: FakeCluster) -> None:
    client = cluster.client()

    def read(answer: ListOffsetsResponse, leaders: list[LedPartition]) -> list[PartitionAnswer]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.ask_leaders([T0, T1], lambda leaders: ListOffsetsRequest(), read)
    assert latest_offsets(client, [T0, T1]) == {T0: 100, T1: 201}


def test_close_closes_all_connections(cluster: FakeCluster) -> None:
    with cluster.client() as client:
        latest_offsets(client, [T0, T1])
    assert all(one.is_closed for broker in cluster.brokers.values() for one in broker.connections)


# -------------------------------------------------------------------------------------------------------------- changes


def create(client: ClusterClient) -> None:
    def check(answer: CreateTopicsResponse) -> None:
        if answer.topics[0].error_code:
            raise Refused("topic", answer.topics[0].error_code)

    client.change(CreateTopicsRequest(), check)


def created(code: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(error_code=code)])


def test_a_change_is_sent_to_the_controller(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.CREATE_TOPICS, lambda request, version: created(0))
    cluster.controller = 2
    create(cluster.client())
    assert asked(cluster, ApiKey.CREATE_TOPICS) == [2]


def test_a_change_is_retried_at_the_new_controller(cluster: FakeCluster) -> None:
    client = cluster.client()
    assert client.metadata.controller_id == 1
    cluster.controller = 2
    cluster.brokers[1].handlers[ApiKey.CREATE_TOPICS] = lambda request, version: created(ErrorCode.NOT_CONTROLLER)
    cluster.brokers[2].handlers[ApiKey.CREATE_TOPICS] = lambda request, version: created(0)
    create(client)
    assert asked(cluster, ApiKey.CREATE_TOPICS) == [1, 2]


def test_a_change_without_a_known_controller_is_sent_to_any_broker(cluster: FakeCluster) -> None:
    cluster.controller = -1
    cluster.handle(ApiKey.CREATE_TOPICS, lambda request, version: created(0))
    create(cluster.client())
    assert len(asked(cluster, ApiKey.CREATE_TOPICS)) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [(HANG_UP, ConnectionLost), (SILENCE, AnswerTimedOut), (created(ErrorCode.REQUEST_TIMED_OUT), Refused)],
)
@pytest.mark.parametrize("controller", [1, -1])
def test_a_change_that_may_have_been_carried_out_is_not_retried(
    cluster: FakeCluster, answer: object, error: type[ClientError], controller: int
) -> None:
    cluster.controller = controller
    cluster.handle(ApiKey.CREATE_TOPICS, lambda request, version: answer)
    with pytest.raises(error):
        create(cluster.client())
    assert len(asked(cluster, ApiKey.CREATE_TOPICS)) == 1


def test_a_change_that_was_not_sent_is_retried(cluster: FakeCluster) -> None:
    client = cluster.client()
    client.topic("t")
    cluster.handle(ApiKey.CREATE_TOPICS, lambda request, version: created(0))
    cluster.brokers[1].stop()
    cluster.controller = 2
    create(client)
    assert asked(cluster, ApiKey.CREATE_TOPICS) == [2]


def test_found_offsets_have_offset_timestamp_and_leader_epoch(cluster: FakeCluster) -> None:
    from tailrace.client.offsets import OffsetSpec, find_offsets

    found = find_offsets(cluster.client(), {T0: OffsetSpec.EARLIEST})
    assert found == {T0: FoundOffset(100, -1, -1)}
