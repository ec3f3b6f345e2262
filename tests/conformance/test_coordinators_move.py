"""Groups whose coordinator moves between a Tailrace and a Kafka broker, with active members: no member has to rejoin,
and reads and commits continue.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tailrace.model.errors import ErrorCode
from tests.support.both_controllers import KINDS, controllers_of
from tests.support.confluent import produce
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_client import RawClient
from tests.support.replicated_cluster import ReplicatedCluster, brokers_below, eventually
from tests.support.streams_member import StreamsMember, reconcile, word_count

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CONTROLLERS = {"broker.session.timeout.ms": "3000"}
BROKERS = {
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
OFFSETS = "__consumer_offsets"


@pytest.fixture(scope="module", params=KINDS)
def mixed(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReplicatedCluster]:
    """Start one Tailrace broker (1) and one Apache Kafka broker (2). Tests leave them running."""
    tmp_path = tmp_path_factory.mktemp("mixed")
    with (
        controllers_of(request.param, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=[1], theirs=[2]) as cluster,
    ):
        cluster.create(OFFSETS, [[1, 2]], cleanup_policy="compact")
        yield cluster


class Member:
    """A consumer in a thread that reads, and commits what it has read."""

    def __init__(self, cluster: ReplicatedCluster, topic: str, group: str, protocol: str) -> None:
        settings = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 500} if protocol == "classic" else {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        self.got: list[bytes] = []
        self.assigned: list[int] = []  # number of partitions at each assignment
        self.has = 0  # current number of partitions
        self.committed = 0
        self._consumer.subscribe([topic], on_assign=lambda _, given: self.assigned.append(len(given)))
        self._is_ending = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ending:
            taken = [one.value() for one in self._consumer.consume(50, 0.2) if one.error() is None]
            self.got += taken
            self.has = len(self._consumer.assignment())
            if taken or self.committed < len(self.got):
                self._commit()
        self._consumer.close()

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
            self.committed = len(self.got)
        except KafkaException as error:
            if error.args[0].code() == ErrorCode.ILLEGAL_GENERATION:
                raise

    def end(self) -> None:
        self._is_ending = True
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_stay_members_while_their_coordinator_moves(mixed: ReplicatedCluster, protocol: str) -> None:
    topic, group = f"read-{protocol}", f"g-{protocol}"
    mixed.create(topic, [[1, 2], [2, 1]])
    members = [Member(mixed, topic, group, protocol) for _ in range(2)]
    sent: list[bytes] = []

    def send() -> None:
        for partition in (0, 1):
            made = [b"%d-%d" % (partition, len(sent) + number) for number in range(20)]
            produce(mixed.bootstrap, topic, partition, made)
            sent.extend(made)

    def has_all() -> bool:
        return sum(len(one.got) for one in members) >= len(sent) and all(
            one.committed == len(one.got) for one in members
        )

    try:
        eventually(lambda: all(one.has == 1 for one in members), "one partition each")
        joined = [list(one.assigned) for one in members]
        send()
        eventually(has_all, "everything is read and committed")
        for _ in range(3):
            leader = mixed.await_leader(OFFSETS, 0, [1, 2])
            mixed.kill(leader)
            mixed.await_leader(OFFSETS, 0, [3 - leader])
            send()
            eventually(has_all, "everything is read and committed")
            mixed.start(leader)
            for name, partition in ((OFFSETS, 0), (topic, 0), (topic, 1)):
                mixed.await_isr(name, partition, [1, 2])
        assert [one.assigned for one in members] == joined
    finally:
        for one in members:
            one.end()
    assert sorted(value for one in members for value in one.got) == sorted(sent)
    reader = Consumer({"bootstrap.servers": mixed.bootstrap, "group.id": group})
    kept = reader.committed([TopicPartition(topic, one) for one in (0, 1)], 30.0)
    reader.close()
    assert [one.offset for one in kept] == [len(sent) // 2] * 2


def test_streams_members_stay_while_their_coordinator_moves(mixed: ReplicatedCluster) -> None:
    mixed.create("lines", [[1, 2], [2, 1]])
    members = [StreamsMember("streams", f"m{number}", word_count("streams", "lines")) for number in range(2)]

    def at(broker_id: int) -> Any:
        return RawClient(mixed[broker_id].bootstrap)

    leader = mixed.await_leader(OFFSETS, 0, [1, 2])
    with at(leader) as client:
        reconcile(client, members, 4)
    before = [(one.epoch, dict(one.tasks)) for one in members]
    for _ in range(3):
        leader = mixed.await_leader(OFFSETS, 0, [1, 2])
        mixed.kill(leader)
        mixed.await_leader(OFFSETS, 0, [3 - leader])
        with at(3 - leader) as client:
            for member in members:
                eventually(lambda member=member, client=client: member.beat(client).error_code == 0, "it is a member")
        assert [(one.epoch, dict(one.tasks)) for one in members] == before
        mixed.start(leader)
        mixed.await_isr(OFFSETS, 0, [1, 2])
    with at(mixed.await_leader(OFFSETS, 0, [1, 2])) as client:
        for member in members:
            member.leave(client)
