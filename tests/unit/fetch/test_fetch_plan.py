"""F3: permissions of a fetch, and the limits of a request."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tailrace.fetch.fetch_plan import FetchParams, active_partitions
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tests.simulation.node import Asked, Consumer, Node, ask_for, broker, registration, want

NONE = ErrorCode.NONE


class Rules:
    """An authorizer with clients that may replicate and topics that nobody may read."""

    def __init__(self, *secret: str, followers: Iterable[str] = ()) -> None:
        self.secret = set(secret)
        self.followers = set(followers)
        self.asked: list[set[str]] = []

    def may_replicate(self, client: object) -> bool:
        return client in self.followers

    def unreadable(self, client: object, topics: Iterable[str]) -> set[str]:
        self.asked.append(set(topics))
        return self.secret & set(topics)


def errors(asked: Asked) -> dict[tuple[str, int], int]:
    return {key: answer.error_code for key, answer in asked.partitions.items()}


def test_f3_readable_partitions_are_returned_beside_refused_ones() -> None:
    node = Node(authorizer=Rules("secret"))
    good, secret = node.lead("good"), node.lead("secret")
    node.append(good, b"a")
    node.append(secret, b"b")
    for version in (4, 12):
        asked = node.fetch(
            [
                want(TopicPartition("nowhere", 0), 0),
                want(secret, 0),
                want(TopicPartition("good", 9), 0),
                want(good, 0),
            ],
            version=version,
        )
        assert errors(asked) == {
            ("good", 0): NONE,
            ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("secret", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("good", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert len(asked.partitions["good", 0].records) > 0
        assert all(not answer.records for key, answer in asked.partitions.items() if key != ("good", 0))


def test_f3_an_unknown_topic_id_is_refused() -> None:
    node = Node()
    good = node.lead("good")
    asked = node.fetch([want(TopicPartition("gone", 3), 0), want(good, 0)])
    assert errors(asked) == {("good", 0): NONE, ("", 3): ErrorCode.UNKNOWN_TOPIC_ID}


def test_f3_a_topic_id_other_than_the_replicas_is_inconsistent() -> None:
    """The topic was deleted and created again. The replica belongs to the old topic, or already to the new one."""
    node = Node()
    partition = node.lead("topic")
    node.publish(partition.key, registration(), topic_id=b"n" * 16)
    asked = node.fetch([want(partition, 0, topic_id=b"n" * 16)])
    assert asked.only.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_f3_a_follower_needs_cluster_action_for_the_whole_request() -> None:
    rules = Rules(followers=["broker 2"])
    node = Node(authorizer=rules)
    node.know(broker(2))
    first, second = (node.lead("a", state=registration(1, (1, 2))), node.lead("b", state=registration(1, (1, 2))))
    wants = [want(first, 0), want(second, 0)]
    refused = node.fetch(wants, replica=2, client="someone")
    assert set(errors(refused).values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert len(errors(refused)) == 2
    allowed = node.fetch(wants, replica=2, client="broker 2")
    assert set(errors(allowed).values()) == {NONE}
    assert rules.asked == []


def test_f3_a_follower_is_refused_only_partitions_that_do_not_exist() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.lead("a", state=registration(1, (1, 2)))
    asked = node.fetch([want(TopicPartition("b", 0), 0), want(partition, 0)], replica=2, version=12)
    assert errors(asked) == {("a", 0): NONE, ("b", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_f3_refusals_follow_the_read_partitions_with_unknown_ids_first() -> None:
    node = Node(authorizer=Rules("secret"))
    secret, good = node.lead("secret"), node.lead("good")
    asked = node.fetch([want(secret, 0), want(TopicPartition("gone", 0), 0), want(good, 0)])
    assert list(asked.partitions) == [("good", 0), ("", 0), ("secret", 0)]


def test_a_refused_partition_does_not_end_the_wait_for_the_others() -> None:
    node = Node()
    good = node.lead("good")
    wants = [want(good, 0), want(TopicPartition("nowhere", 0), 0)]
    assert node.fetch(wants, version=12, max_wait_ms=500).is_waiting
    assert not node.fetch(wants[1:], version=12, max_wait_ms=500).is_waiting


def test_permissions_are_checked_with_every_request_of_a_session() -> None:
    rules = Rules()
    node = Node(authorizer=rules)
    first, second = node.lead("a"), node.lead("b")
    consumer = Consumer(node, [want(first, 0), want(second, 0)])
    consumer.poll()
    assert errors(consumer.poll()) == {}
    rules.secret = {"b"}
    assert errors(consumer.poll()) == {("b", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    rules.secret = set()
    assert errors(consumer.poll()) == {("b", 0): NONE}
    assert errors(consumer.poll()) == {}
    assert rules.asked == [{"a", "b"}] * 5


def test_a_session_finds_a_topic_by_its_id_once_it_is_created() -> None:
    node = Node()
    there = node.lead("there")
    consumer = Consumer(node, [want(there, 0), want(TopicPartition("later", 0), 0)])
    assert errors(consumer.poll()) == {("there", 0): NONE, ("", 0): ErrorCode.UNKNOWN_TOPIC_ID}
    assert errors(consumer.poll()) == {("", 0): ErrorCode.UNKNOWN_TOPIC_ID}
    later = node.lead("later")
    node.append(later, b"a")
    asked = consumer.poll()
    assert errors(asked) == {("later", 0): NONE}
    assert asked.only.records


def test_a_deleted_topic_is_in_every_response_of_a_session() -> None:
    node = Node()
    partition = node.lead("topic")
    consumer = Consumer(node, [want(partition, 0)])
    consumer.poll()
    node.partitions.remove(partition.key)
    assert errors(consumer.poll()) == {("topic", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}
    node.unpublish("topic")
    assert errors(consumer.poll()) == {("topic", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert errors(consumer.poll()) == {("topic", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_deleted_topic_is_refused_while_its_replica_is_still_hosted() -> None:
    node = Node()
    partition = node.lead("topic")
    consumer = Consumer(node, [want(partition, 0)])
    consumer.poll()
    assert errors(consumer.poll()) == {}
    node.unpublish("topic")
    assert errors(consumer.poll()) == {("topic", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize(
    ("replica", "version", "rack", "leader_only"),
    [(-1, 10, None, True), (-1, 11, "", False), (-1, 11, "r", False), (2, 18, "", True), (-3, 18, "", False)],
)
def test_f5_replica_id_and_version_decide_if_only_the_leader_may_answer(
    replica: int, version: int, rack: str | None, leader_only: bool
) -> None:
    ask = ask_for([], version=version, replica=replica, rack_id=rack or "")
    params = FetchParams.of(ask, version, 1_000)
    assert params.leader_only == leader_only
    assert params.rack == rack


def test_params_take_the_requests_limits_up_to_the_brokers() -> None:
    ask = ask_for([], max_bytes=500, min_bytes=400, max_wait_ms=7, isolation_level=1, replica_epoch=5)
    params = FetchParams.of(ask, 18, 300)
    assert (params.max_bytes, params.min_bytes, params.max_wait_ms) == (300, 300, 7)
    assert params.isolation is Isolation.READ_COMMITTED
    assert params.replica_epoch == 5
    assert [FetchParams.of(ask, version, 1).has_hard_limit for version in (0, 1, 2, 3, 4)] == [True] * 3 + [False] * 2


def test_idle_partitions_of_a_session_are_skipped() -> None:
    node = Node()
    partitions = [node.lead("topic", n) for n in range(10)]
    consumer = Consumer(node, [want(one, 0) for one in partitions])
    consumer.poll()
    session = node.sessions.get(consumer.session)
    assert session is not None
    assert active_partitions(session.partitions.values()) == []
    node.append(partitions[4], b"a")
    assert [fetch.index for fetch in active_partitions(session.partitions.values())] == [4]
    node.apply(partitions[7], registration(1, leader_epoch=1, partition_epoch=1))
    assert [fetch.index for fetch in active_partitions(session.partitions.values())] == [4, 7]
