"""Partitions with replicas on several brokers below real controllers: on Tailrace alone, and on Tailrace and Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.both_controllers import KINDS, controllers_of
from tests.support.confluent import consume, produce
from tests.support.kafka_install import KafkaInstallation
from tests.support.kraft_broker import kraft_broker
from tests.support.replicated_cluster import PATIENCE_S, brokers_below, eventually
from tests.support.replicated_cluster import ReplicatedCluster as Cluster
from tests.support.steady_load import IDEMPOTENT, SteadyLoad

pytestmark = pytest.mark.kafka

CONTROLLERS = {"broker.session.timeout.ms": "3000"}
BROKERS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.lag.time.max.ms": "10000",
}


def check_nothing_lost(cluster: Cluster, topic: str, load: SteadyLoad) -> None:
    """Check that every acknowledged record is at its offset, without duplicates, and that none was refused."""
    found = {one.offset: one.value for one in consume(cluster.bootstrap, topic, 0)}
    assert load.refused == []
    assert {offset: found.get(offset) for offset in load.acknowledged} == load.acknowledged
    assert len(set(found.values())) == len(found)


def values(cluster: Cluster, topic: str, partition: int = 0) -> list[bytes | None]:
    return [one.value for one in consume(cluster.bootstrap, topic, partition)]


@pytest.fixture(scope="module", params=KINDS)
def ours(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Start three Tailrace brokers. Tests leave them running."""
    tmp_path = tmp_path_factory.mktemp("ours")
    with (
        controllers_of(request.param, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=(1, 2, 3)) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module", params=KINDS)
def mixed(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Start one Tailrace broker (1) and one Apache Kafka broker (2). Tests leave them running."""
    tmp_path = tmp_path_factory.mktemp("mixed")
    settings = {**BROKERS, "offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2"}
    with (
        controllers_of(request.param, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, settings, ours=[1], theirs=[2]) as cluster,
    ):
        yield cluster


@pytest.mark.parametrize("kind", KINDS)
def test_two_replicas_have_the_same_bytes(kafka: KafkaInstallation, tmp_path: Path, kind: str) -> None:
    with (
        controllers_of(kind, kafka, tmp_path, is_formatted_here=True) as controllers,
        kraft_broker(controllers, tmp_path / "one", 1) as one,
        kraft_broker(controllers, tmp_path / "two", 2) as two,
    ):
        cluster = Cluster({1: one, 2: two})
        cluster.create("t", [[1, 2], [2, 1]], min_insync_replicas="2")
        for partition in range(2):
            assert produce(cluster.bootstrap, "t", partition, [b"a", b"b"], acks="all") == [0, 1]
            cluster.await_same("t", partition, [1, 2])


@pytest.mark.slow
def test_three_replicas_have_the_same_bytes(ours: Cluster) -> None:
    ours.create("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas="2")
    for partition in range(3):
        sent = [b"%d-%d" % (partition, number) for number in range(500)]
        assert produce(ours.bootstrap, "t", partition, sent, acks="all") == list(range(500))
        assert values(ours, "t", partition) == sent
    for partition in range(3):
        ours.await_same("t", partition, [1, 2, 3])


@pytest.mark.slow
def test_tailrace_follows_kafka_and_kafka_follows_tailrace(mixed: Cluster) -> None:
    mixed.create("theirs", [[2, 1]], min_insync_replicas="2")
    mixed.create("ours", [[1, 2]], min_insync_replicas="2")
    sent = [b"%d" % number for number in range(1_000)]
    for topic in ("theirs", "ours"):
        assert produce(mixed.bootstrap, topic, 0, sent, acks="all") == list(range(1_000))
        assert values(mixed, topic) == sent
        mixed.await_same(topic, 0, [1, 2])


@pytest.mark.slow
def test_no_acknowledged_record_is_lost_when_leaders_are_killed(ours: Cluster) -> None:
    ours.create("killed", [[1, 2, 3]], min_insync_replicas="2")
    with SteadyLoad(ours.bootstrap, "killed", IDEMPOTENT) as load:
        for _ in range(3):
            load.await_more()
            leader = ours.state("killed", 0)[0]
            ours.kill(leader)
            ours.await_leader("killed", 0, [one for one in (1, 2, 3) if one != leader])
            load.await_more()
            ours.start(leader)
            ours.await_isr("killed", 0, [1, 2, 3])
    check_nothing_lost(ours, "killed", load)
    ours.await_same("killed", 0, [1, 2, 3])


@pytest.mark.slow
def test_leadership_moves_between_kafka_and_tailrace(mixed: Cluster) -> None:
    mixed.create("both", [[1, 2]])
    with SteadyLoad(mixed.bootstrap, "both", IDEMPOTENT) as load:
        for leader, other in ((1, 2), (2, 1), (1, 2)):
            assert mixed.await_leader("both", 0, [1, 2]) == leader
            load.await_more()
            mixed.kill(leader)
            mixed.await_leader("both", 0, [other])
            load.await_more()
            mixed.start(leader)
            mixed.await_isr("both", 0, [1, 2])
    check_nothing_lost(mixed, "both", load)
    mixed.await_same("both", 0, [1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("leader", [1, 2])
def test_a_follower_behind_the_leaders_log_start_restarts_there(mixed: Cluster, leader: int) -> None:
    """Records that the follower missed are deleted at the leader while the follower is away."""
    topic, follower = f"deleted-at-{leader}", 3 - leader
    mixed.create(topic, [[leader, follower]])
    produce(mixed.bootstrap, topic, 0, [b"%d" % one for one in range(10)])
    mixed.await_same(topic, 0, [1, 2])
    mixed.kill(follower)
    mixed.await_isr(topic, 0, [leader])
    alone = {"batch.num.messages": 1}  # one record per batch, so that the log can begin at any record
    produce(mixed[leader].bootstrap, topic, 0, [b"%d" % one for one in range(10, 30)], **alone)
    admin = AdminClient({"bootstrap.servers": mixed[leader].bootstrap})
    next(iter(admin.delete_records([TopicPartition(topic, 0, 20)]).values())).result(PATIENCE_S)
    mixed.start(follower)
    mixed.await_isr(topic, 0, [1, 2])
    produce(mixed.bootstrap, topic, 0, [b"last"])
    place = mixed[follower].data / f"{topic}-0"
    eventually(lambda: (place / "00000000000000000020.log").exists(), "a log that begins at 20")
    mixed.kill(leader)
    mixed.await_leader(topic, 0, [follower])
    kept = [one.value for one in consume(mixed[follower].bootstrap, topic, 0, 20)]
    assert kept == [*(b"%d" % one for one in range(20, 30)), b"last"]
    mixed.start(leader)
    mixed.await_isr(topic, 0, [1, 2])


@pytest.mark.slow
def test_groups_and_transactions_continue_with_another_coordinator(ours: Cluster) -> None:
    ours.create("input", [[1, 2, 3]], min_insync_replicas="2")
    producer = Producer({"bootstrap.servers": ours.bootstrap, "transactional.id": "t"})
    consumer = Consumer(
        {
            "bootstrap.servers": ours.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["input"])
    producer.init_transactions(PATIENCE_S)
    got: list[bytes] = []
    sent: list[bytes] = []

    def consume_all() -> bool:
        got.extend(one.value() for one in consumer.consume(100, 1.0) if one.error() is None)
        return len(got) >= len(sent)

    for turn in range(2):
        producer.begin_transaction()
        for number in range(20):
            sent.append(b"%d-%d" % (turn, number))
            producer.produce("input", sent[-1])
        producer.commit_transaction(PATIENCE_S)
        eventually(consume_all, "all committed records")
        commit(consumer)
        if turn == 0:
            leader = ours.state("input", 0)[0]
            killed = next(one for one in (1, 2, 3) if one != leader)
            ours.kill(killed)
            ours.await_leader("input", 0, [leader])
            ours.start(killed)
            ours.kill(leader)
            ours.await_leader("input", 0, [one for one in (1, 2, 3) if one != leader])
            ours.start(leader)
    assert got == sent
    consumer.close()
    ours.await_isr("input", 0, [1, 2, 3])
    ours.await_same("input", 0, [1, 2, 3])


def commit(consumer: Consumer) -> None:
    def is_committed() -> bool:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException:
            return False
        return True

    eventually(is_committed, "offsets are committed")


@pytest.mark.slow
def test_records_are_refused_below_min_insync_replicas(ours: Cluster) -> None:
    ours.create("all-three", [[1, 2, 3]], min_insync_replicas="3")
    produce(ours.bootstrap, "all-three", 0, [b"a"])
    ours.kill(3)
    ours.await_isr("all-three", 0, [1, 2])
    refusals: list[Any] = []
    producer = Producer({"bootstrap.servers": ours.bootstrap, "acks": "all", "retries": 0})
    producer.produce("all-three", b"b", partition=0, on_delivery=lambda error, _: refusals.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert [one.name() for one in refusals] == ["NOT_ENOUGH_REPLICAS"]
    ours.start(3)
    ours.await_isr("all-three", 0, [1, 2, 3])
    assert produce(ours.bootstrap, "all-three", 0, [b"c"]) == [1]
    ours.await_same("all-three", 0, [1, 2, 3])


@pytest.mark.slow
def test_a_reassigned_partition_moves_and_its_old_replicas_are_deleted(
    ours: Cluster, kafka: KafkaInstallation, tmp_path: Path
) -> None:
    ours.create("moving", [[1, 2]])
    sent = [b"%d" % number for number in range(2_000)]
    produce(ours.bootstrap, "moving", 0, sent)
    plan = tmp_path / "plan.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "moving", "partition": 0, "replicas": [3, 2]}]}')
    kafka.tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        *("--bootstrap-server", ours.bootstrap, "--reassignment-json-file", str(plan), "--execute"),
    )
    ours.await_isr("moving", 0, [2, 3])
    eventually(lambda: not (ours[1].data / "moving-0").exists(), "the replica on 1 is gone")
    assert values(ours, "moving") == sent
    ours.await_same("moving", 0, [2, 3])
    admin = AdminClient({"bootstrap.servers": ours.bootstrap})
    admin.delete_topics(["moving"])["moving"].result(PATIENCE_S)
    for broker_id in (2, 3):
        place = ours[broker_id].data / "moving-0"
        eventually(lambda place=place: not place.exists(), f"the replica on {broker_id} is gone")
    ours.create("moving", [[2, 3]])
    assert produce(ours.bootstrap, "moving", 0, [b"new"]) == [0]
    ours.await_same("moving", 0, [2, 3])
