"""Partitions with replicas on several brokers, below real controllers: on brokers of ours, and on ours and Kafka's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.confluent import consume, produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 60
CONTROLLERS = {"broker.session.timeout.ms": "3000"}
BROKERS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.lag.time.max.ms": "10000",
}

Node = TailraceProcess | KafkaMember


def eventually(check: Callable[[], Any], what: str) -> Any:
    """What a check gives once it gives something."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {PATIENCE_S} s")


class Cluster:
    """Some brokers by their ids; whoever is alive answers for all."""

    def __init__(self, brokers: dict[int, Node]) -> None:
        self.brokers = brokers

    @property
    def bootstrap(self) -> str:
        return ",".join(one.bootstrap for one in self.brokers.values())

    def __getitem__(self, broker_id: int) -> Node:
        return self.brokers[broker_id]

    def create(self, topic: str, replicas: Sequence[Sequence[int]], **config: str) -> None:
        """A topic whose partitions are where it is said."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        settings = {key.replace("_", "."): text for key, text in config.items()}
        wanted = NewTopic(topic, len(replicas), replica_assignment=[list(one) for one in replicas], config=settings)
        admin.create_topics([wanted])[topic].result(PATIENCE_S)
        for index, one in enumerate(replicas):
            self.await_isr(topic, index, one)

    def state(self, topic: str, partition: int) -> tuple[int, list[int]]:
        """(leader, ISR) of a partition, as any broker tells it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        known = admin.list_topics(topic, timeout=30).topics[topic].partitions.get(partition)
        return (-1, []) if known is None else (known.leader, sorted(known.isrs))

    def await_isr(self, topic: str, partition: int, isr: Sequence[int]) -> int:
        """The leader, once these are in sync."""

        def leader() -> list[int] | None:
            found, in_sync = self.state(topic, partition)
            return [found] if found >= 0 and in_sync == sorted(isr) else None

        found: list[int] = eventually(leader, f"{sorted(isr)} are in sync in {topic}-{partition}")
        return found[0]

    def log(self, broker_id: int, topic: str, partition: int) -> bytes:
        folder = self.brokers[broker_id].data / f"{topic}-{partition}"
        return b"".join(one.read_bytes() for one in sorted(folder.glob("*.log")))

    def await_same(self, topic: str, partition: int, broker_ids: Sequence[int]) -> None:
        """Until the replicas have the same bytes, and know the same leader epochs."""

        def are_same() -> bool:
            return len({self.log(one, topic, partition) for one in broker_ids}) == 1

        eventually(are_same, f"the replicas of {topic}-{partition} are the same")


def values(cluster: Cluster, topic: str, partition: int = 0) -> list[bytes | None]:
    return [one.value for one in consume(cluster.bootstrap, topic, partition)]


@pytest.fixture
def ours(kafka: KafkaInstallation, tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers of ours."""
    with ExitStack() as stack:
        controllers = stack.enter_context(KafkaControllers(kafka, tmp_path, properties=CONTROLLERS))
        brokers: dict[int, Node] = {}
        for number in (1, 2, 3):
            broker = kraft_broker(controllers, tmp_path / f"broker-{number}", number, BROKERS)
            brokers[number] = stack.enter_context(broker)
        yield Cluster(brokers)


@pytest.fixture
def mixed(kafka: KafkaInstallation, tmp_path: Path) -> Iterator[Cluster]:
    """One broker of ours, 1, and one of Apache Kafka, 2."""
    with ExitStack() as stack:
        controllers = stack.enter_context(KafkaControllers(kafka, tmp_path, properties=CONTROLLERS))
        settings = {**BROKERS, "offsets.topic.replication.factor": "2", "transaction.state.log.replication.factor": "2"}
        broker = stack.enter_context(kraft_broker(controllers, tmp_path / "broker-1", 1, settings))
        theirs = KafkaMember(kafka, tmp_path / "broker-2", controllers, 2, settings)
        stack.enter_context(theirs)
        yield Cluster({1: broker, 2: theirs})


def test_three_brokers_have_the_same_bytes(ours: Cluster) -> None:
    ours.create("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas="2")
    for partition in range(3):
        sent = [b"%d-%d" % (partition, number) for number in range(500)]
        assert produce(ours.bootstrap, "t", partition, sent, acks="all") == list(range(500))
        assert values(ours, "t", partition) == sent
    for partition in range(3):
        ours.await_same("t", partition, [1, 2, 3])


def test_we_follow_kafka_and_kafka_follows_us(mixed: Cluster) -> None:
    mixed.create("theirs", [[2, 1]], min_insync_replicas="2")
    mixed.create("ours", [[1, 2]], min_insync_replicas="2")
    sent = [b"%d" % number for number in range(1_000)]
    for topic in ("theirs", "ours"):
        assert produce(mixed.bootstrap, topic, 0, sent, acks="all") == list(range(1_000))
        assert values(mixed, topic) == sent
        mixed.await_same(topic, 0, [1, 2])
