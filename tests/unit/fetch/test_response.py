"""F16: responses per version."""

from __future__ import annotations

import pytest

from tailrace.fetch.response import refused_fetch
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import run_steps
from tailrace.protocol.flat.fetch import ask_of, message_of
from tailrace.protocol.messages import FetchResponse
from tests.simulation.node import Asked, Node, broker, registration, request_for, topic_id_of, want


def sent(asked: Asked) -> FetchResponse:
    """Return the response as the client decodes it."""
    return FetchResponse.decode(asked.response_bytes(asked.response), asked.version)


@pytest.mark.parametrize("version", range(19))
def test_f16_every_version_has_the_values_for_which_it_has_fields(version: int) -> None:
    node = Node()
    node.know(broker(2))
    good = node.lead("good")
    node.append(good, b"a", b"b")
    good.delete_records(1, node.now_ms)
    elsewhere = node.host("elsewhere", state=registration(2, (1, 2), leader_epoch=3))
    wants = [want(good, 1), want(elsewhere, 0, epoch=2 if version >= 9 else -1)]
    response = sent(node.fetch(wants, version=version, epoch=0, isolation_level=1 if version >= 4 else 0))
    by_name = version < 13
    first, second = response.responses
    expected = [("good", bytes(16)), ("elsewhere", bytes(16))]
    if not by_name:
        expected = [("", topic_id_of("good")), ("", topic_id_of("elsewhere"))]
    assert [(topic.topic, topic.topic_id) for topic in (first, second)] == expected
    (answer,), (refused,) = first.partitions, second.partitions
    assert (answer.error_code, answer.high_watermark) == (0, 2)
    assert len(answer.records) > 0
    assert answer.last_stable_offset == (2 if version >= 4 else -1)
    assert answer.log_start_offset == (1 if version >= 5 else -1)
    assert response.session_id == (1 if version >= 7 else 0)
    fenced = ErrorCode.FENCED_LEADER_EPOCH if version >= 9 else ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.error_code == fenced
    leader = (refused.current_leader.leader_id, refused.current_leader.leader_epoch)
    nodes = [(one.node_id, one.host, one.port) for one in response.node_endpoints]
    assert leader == ((2, 3) if version >= 16 else (-1, -1))
    assert nodes == ([(2, "host2", 9002)] if version >= 16 else [])


def test_f16_a_follower_gets_the_leader_without_node_endpoints() -> None:
    node = Node()
    node.know(broker(2), broker(3))
    partition = node.host(state=registration(2, (1, 2, 3), leader_epoch=3))
    response = node.fetch([want(partition, 0)], replica=3, replica_epoch=103).response
    assert response.node_endpoints == []
    assert response.responses[0].partitions[0].current_leader.leader_id == 2


def test_f16_other_errors_do_not_name_the_leader() -> None:
    node = Node()
    partition = node.lead()
    for one in (want(partition, 99), want(partition, 0, epoch=9)):
        answer = node.fetch([one]).only
        assert answer.error_code in (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_LEADER_EPOCH)
        assert answer.current_leader.leader_id == -1


@pytest.mark.parametrize("version", [0, 4, 5, 6, 12, 18])
def test_f16_a_failed_disk_is_reported_as_not_leader_before_version_6(version: int) -> None:
    node = Node()
    partition = node.lead()
    node.partitions.mark_offline(partition.key)
    answer = node.fetch([want(partition, 0)], version=version).only
    expected = ErrorCode.NOT_LEADER_OR_FOLLOWER if version < 6 else ErrorCode.KAFKA_STORAGE_ERROR
    assert answer.error_code == expected


def test_f16_consecutive_partitions_of_a_topic_share_one_entry() -> None:
    node = Node()
    a0, a1, b0 = node.lead("a", 0), node.lead("a", 1), node.lead("b", 0)
    response = node.fetch([want(a0, 0), want(a1, 0), want(b0, 0)]).response
    assert [(topic.topic, len(topic.partitions)) for topic in response.responses] == [("a", 2), ("b", 1)]
    response = node.fetch([want(a0, 0), want(b0, 0), want(a1, 0)]).response
    assert [(topic.topic, len(topic.partitions)) for topic in response.responses] == [("a", 1), ("b", 1), ("a", 1)]


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
def test_a_failed_request_has_its_error_where_the_version_expects_it(version: int) -> None:
    request = request_for(
        [want(TopicPartition("a", 0), 0), want(TopicPartition("b", 3), 0)], version=version, session=7
    )
    response = message_of(
        run_steps(refused_fetch(ask_of(request, version), version, ErrorCode.UNKNOWN_SERVER_ERROR), 0), 5
    )
    read = FetchResponse.decode(response.encode(version), version)
    assert read.throttle_time_ms == 5
    assert (read.error_code, read.session_id) == ((-1, 7) if version >= 7 else (0, 0))
    partitions = [
        (topic.topic, one.partition_index, one.error_code) for topic in read.responses for one in topic.partitions
    ]
    assert partitions == ([("a", 0, -1), ("b", 3, -1)] if version < 13 else [])
