"""Share groups over several Tailrace and Kafka brokers: the group coordinator, the share coordinator (which keeps the
state) and the leader of the partition are different brokers, and any of them may be killed.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, ShareConsumer, TopicCollection
from confluent_kafka.admin import AdminClient

from tailrace.coordinator.key_partition import partition_of
from tailrace.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    IncrementalAlterConfigsRequest,
)
from tailrace.shares.state.persisted_state import SharePartitionKey
from tests.support.both_controllers import KINDS, controllers_of
from tests.support.confluent import produce
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_client import RawClient
from tests.support.replicated_cluster import PATIENCE_S, Node, ReplicatedCluster, brokers_below, eventually, frozen
from tests.support.share_workers import ShareWorkers

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CONTROLLERS = {"broker.session.timeout.ms": "3000"}
BROKERS = {
    "offsets.topic.replication.factor": "2",
    "share.coordinator.state.topic.replication.factor": "2",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "3",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "group.share.record.lock.duration.ms": "5000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.delivery.count.limit": "10",
}
_GROUP = 32
OFFSETS, STATE = "__consumer_offsets", "__share_group_state"
UNANSWERED = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}


def topic_id(cluster: ReplicatedCluster, topic: str) -> bytes:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    reported = admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE_S).topic_id
    high, low = reported.get_most_significant_bits(), reported.get_least_significant_bits()
    return UUID(int=(high % 2**64) << 64 | (low % 2**64)).bytes


def begin_early(cluster: ReplicatedCluster, group: str) -> None:
    """Let the group begin with a topic's first record."""
    config = IncrementalAlterConfigsRequest.AlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=_GROUP, resource_name=group, configs=[config]
    )
    with RawClient(cluster.bootstrap.split(",")[0]) as client:
        assert client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0


def group_at(cluster: ReplicatedCluster, topic: str, coordinator: int, keeper: int) -> str:
    """Return a group that one broker coordinates, and whose state for a topic's only partition is kept by another."""
    wanted = topic_id(cluster, topic)
    for number in range(1_000):
        name = f"g-{coordinator}-{keeper}-{number}"
        key = str(SharePartitionKey(name, wanted, 0))
        places = cluster.brokers[coordinator], cluster.brokers[keeper]
        if places == (broker_of(cluster, partition_of(name, 5)), broker_of(cluster, partition_of(key, 3))):
            begin_early(cluster, name)
            return name
    raise AssertionError("no name fits")


def broker_of(cluster: ReplicatedCluster, partition: int) -> Node:
    """Return the first leader of a partition of a coordinators' topic."""
    return cluster.brokers[partition % len(cluster.brokers) + 1]


def create_internal_topics(cluster: ReplicatedCluster) -> None:
    ids = sorted(cluster.brokers)
    placed = [[*ids[first:], *ids[:first]] for first in range(len(ids))]
    cluster.create(OFFSETS, [placed[number % len(ids)] for number in range(5)], cleanup_policy="compact")
    cluster.create(STATE, [placed[number % len(ids)] for number in range(3)], retention_ms="-1")


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
        create_internal_topics(cluster)
        yield cluster


@pytest.fixture(scope="module", params=KINDS)
def ours(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReplicatedCluster]:
    """Start three Tailrace brokers. Tests leave them running."""
    tmp_path = tmp_path_factory.mktemp("ours")
    with (
        controllers_of(request.param, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=[1, 2, 3]) as cluster,
    ):
        create_internal_topics(cluster)
        yield cluster


class Member:
    """A librdkafka share consumer in a thread; `ledger` has the records that all members got and acknowledged, in
    order.
    """

    def __init__(self, cluster: ReplicatedCluster, topic: str, group: str, ledger: list[tuple[str, str]]) -> None:
        self._ledger = ledger
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "max.poll.records": 20,
            }
        )
        self._consumer.subscribe([topic])
        self._is_ending = False
        self.problems: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ending:
            try:
                messages = self._consumer.poll(0.2)
            except KafkaException as error:
                self.problems[f"poll {error}"] += 1
                continue
            got = []
            for message in messages:
                if message.error() is not None:
                    self.problems[f"message {message.error()}"] += 1
                    continue
                value = message.value().decode()
                self._ledger.append(("got", value))
                fate = AcknowledgeType.REJECT if value.startswith("reject") else AcknowledgeType.ACCEPT
                self._consumer.acknowledge(message, fate)
                got.append(value)
            if got:
                self._commit(got)
        self._consumer.close()

    def _commit(self, got: list[str]) -> None:
        try:
            failures = [error for error in self._consumer.commit_sync(60.0).values() if error is not None]
        except KafkaException as error:
            failures = [error]
        for error in failures:
            self.problems[f"commit {error}"] += 1
        if not failures:
            self._ledger.extend(("done", value) for value in got)
        elif all(error.args[0].code() in UNANSWERED for error in failures):
            self._ledger.extend(("unanswered", value) for value in got)

    def end(self) -> None:
        self._is_ending = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def acknowledged(ledger: list[tuple[str, str]]) -> set[str]:
    """Return the values that are or may be acknowledged: a killed broker may have persisted without a response."""
    fates: dict[str, str] = {}
    for what, value in ledger:
        if fates.get(value) != "done":
            fates[value] = what
    return {value for value, what in fates.items() if what != "got"}


def check_ledger(ledger: list[tuple[str, str]], values: list[str]) -> None:
    """Check that each record was acknowledged, and was not delivered again after that."""
    done: set[str] = set()
    for what, value in ledger:
        assert what == "unanswered" or value not in done, f"{what} {value}, after it was acknowledged"
        if what == "done":
            done.add(value)
    assert acknowledged(ledger) == set(values)


def await_nothing_left(cluster: ReplicatedCluster, group: str) -> None:
    """Wait until the group's state has no lag, also for acknowledgements without a response."""

    def left() -> dict[int, tuple[int, int]] | None:
        for one in cluster.brokers.values():
            with RawClient(one.bootstrap) as client:
                reported = described_offsets(client, group)
            if reported.error_code == 0:
                return by_partition(reported)
        return None

    eventually(lambda: [lag for _, lag in (left() or {}).values()] == [0], "everything is acknowledged")


def await_done(ledger: list[tuple[str, str]], values: list[str], members: list[Member]) -> None:
    wanted = set(values)
    deadline = time.monotonic() + 2 * PATIENCE_S
    while True:
        missing = wanted - acknowledged(list(ledger))
        if not missing:
            return
        problems = [one.problems for one in members]
        assert time.monotonic() < deadline, f"not acknowledged: {sorted(missing)[:5]} of {len(missing)}; {problems}"
        time.sleep(0.1)


@pytest.mark.parametrize(("coordinator", "keeper", "leader"), list(product((1, 2), repeat=3)))
def test_group_coordinator_share_coordinator_and_leader_may_be_kafka_or_tailrace(
    mixed: ReplicatedCluster, coordinator: int, keeper: int, leader: int
) -> None:
    """A librdkafka consumer reads one half, and then a Java consumer the rest."""
    topic = f"t-{coordinator}-{keeper}-{leader}"
    mixed.create(topic, [[leader, 3 - leader]])
    group = group_at(mixed, topic, coordinator, keeper)
    values = [f"{'reject' if number % 3 == 0 else 'v'}-{number}" for number in range(60)]
    produce(mixed.bootstrap, topic, 0, [value.encode() for value in values[:30]])
    ledger: list[tuple[str, str]] = []
    member = Member(mixed, topic, group, ledger)
    try:
        await_done(ledger, values[:30], [member])
    finally:
        member.end()
    check_ledger(ledger, values[:30])
    assert not member.problems
    produce(mixed.bootstrap, topic, 0, [value.encode() for value in values[30:]])
    with ShareWorkers(mixed.bootstrap, topic, group) as workers:
        worker = workers.start("java")
        fates = {f"{'reject' if value.startswith('reject') else 'accept'} {value}" for value in values[30:]}
        workers.wait_for(lambda output: fates <= {line.lower() for line in output})
        worker.stop()
        output = workers.output()
    assert sorted(line.split()[2] for line in output if line.startswith("got")) == sorted(values[30:])
    assert not [line for line in output if line.startswith("failed")]
    with RawClient(mixed[coordinator].bootstrap) as client:
        assert offsets(client, group)[0][1] == 0
        eventually(lambda: alter(client, group, topic, 5) == 0, "nobody is a member")
        assert offsets(client, group) == {0: (5, 55)}
        deleted = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
        reported = client.ask(DeleteShareGroupOffsetsRequest(group_id=group, topics=[deleted]), 0)
        assert (reported.error_code, [one.error_code for one in reported.responses]) == (0, [0])
        assert offsets(client, group) == {}


def alter(client: RawClient, group: str, topic: str, start: int) -> int:
    request = AlterShareGroupOffsetsRequest
    partition = request.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=start)
    named = request.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[partition])
    reported = client.ask(request(group_id=group, topics=[named]), 0)
    return int(reported.error_code or reported.responses[0].partitions[0].error_code)


def offsets(client: RawClient, group: str) -> dict[int, tuple[int, int]]:
    """Return the start offset and lag of the group, by partition of the only topic."""
    reported = described_offsets(client, group)
    assert reported.error_code == 0
    return by_partition(reported)


def described_offsets(client: RawClient, group: str) -> Any:
    request = DescribeShareGroupOffsetsRequest
    asked = request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    (reported,) = client.ask(request(groups=[asked]), 1).groups
    return reported


def by_partition(reported: Any) -> dict[int, tuple[int, int]]:
    return {one.partition_index: (one.start_offset, one.lag) for topic in reported.topics for one in topic.partitions}


def test_no_record_is_lost_or_delivered_again_when_each_broker_is_killed(ours: ReplicatedCluster) -> None:
    """First the leader, then the share coordinator, then the group coordinator."""
    ours.create("killed", [[1, 2, 3]], min_insync_replicas="1")
    group = group_at(ours, "killed", 3, 2)
    values: list[str] = []
    ledger: list[tuple[str, str]] = []
    members = [Member(ours, "killed", group, ledger) for _ in range(2)]

    def more() -> None:
        made = [f"v-{len(values) + number}" for number in range(200)]
        produce(ours.bootstrap, "killed", 0, [value.encode() for value in made])
        values.extend(made)

    try:
        more()
        await_done(ledger, values[:20], members)
        for killed in (1, 2, 3):
            more()
            ours.kill(killed)
            ours.await_leader("killed", 0, [one for one in (1, 2, 3) if one != killed])
            more()
            await_done(ledger, values, members)
            ours.start(killed)
            for topic, partition in (("killed", 0), (STATE, 0), (STATE, 1), (STATE, 2)):
                ours.await_isr(topic, partition, [1, 2, 3])
        await_nothing_left(ours, group)
    finally:
        for member in members:
            member.end()
    check_ledger(ledger, values)


def test_no_record_is_lost_or_delivered_again_when_each_broker_is_frozen(ours: ReplicatedCluster) -> None:
    """The leader, the share coordinator and the group coordinator: each comes back with its old role."""
    ours.create("frozen", [[1, 2, 3]], min_insync_replicas="1")
    group = group_at(ours, "frozen", 3, 2)
    values: list[str] = []
    ledger: list[tuple[str, str]] = []
    members = [Member(ours, "frozen", group, ledger) for _ in range(2)]

    def more(cluster: ReplicatedCluster) -> None:
        made = [f"v-{len(values) + number}" for number in range(200)]
        produce(cluster.bootstrap, "frozen", 0, [value.encode() for value in made])
        values.extend(made)

    try:
        for still in (1, 2, 3):
            rest = ReplicatedCluster({number: one for number, one in ours.brokers.items() if number != still})
            more(ours)
            with frozen(ours[still]):
                rest.await_leader("frozen", 0, list(rest.brokers))
                for partition in range(3):
                    rest.await_leader(STATE, partition, list(rest.brokers))
                more(rest)
                await_done(ledger, values[:-100], members)
            await_done(ledger, values, members)
            for topic, partition in (("frozen", 0), (STATE, 0), (STATE, 1), (STATE, 2)):
                ours.await_isr(topic, partition, [1, 2, 3])
        await_nothing_left(ours, group)
    finally:
        for member in members:
            member.end()
    check_ledger(ledger, values)


def test_java_consumers_read_everything_while_brokers_of_both_kinds_are_killed(
    mixed: ReplicatedCluster, kafka: KafkaInstallation
) -> None:
    mixed.create("both", [[1, 2]])
    group = group_at(mixed, "both", 1, 2)
    values: list[str] = []

    def more() -> None:
        made = [f"v-{len(values) + number}" for number in range(100)]
        produce(mixed.bootstrap, "both", 0, [value.encode() for value in made])
        values.extend(made)

    def await_accepted(workers: ShareWorkers) -> None:
        wanted = {f"accept {value}" for value in values}
        workers.wait_for(lambda output: wanted <= {line.lower() for line in output})

    with ShareWorkers(mixed.bootstrap, "both", group) as workers:
        members = [workers.start(name, "max.poll.records=10") for name in ("a", "b")]
        more()
        await_accepted(workers)
        for killed in (1, 2, 1):
            more()
            mixed.kill(killed)
            mixed.await_leader("both", 0, [3 - killed])
            more()
            await_accepted(workers)
            mixed.start(killed)
            for topic, partition in (("both", 0), *((STATE, number) for number in range(3))):
                mixed.await_isr(topic, partition, [1, 2])
        for member in members:
            member.stop()
        received = [line.lower().split() for line in workers.received]
    names = {"got": "got", "accept": "done"}
    check_ledger([(names[line[0]], line[-1]) for line in received if line[0] in names], values)
    reported = kafka.tool(
        "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
        *("--bootstrap-server", mixed.bootstrap, "--describe", "--group", group, "--offsets"),
    )
    # The start offset is that of the last write; completed records after it count for the lag.
    *named, _, lag = reported.splitlines()[-1].split()
    assert (named, lag) == ([group, "both", "0"], "0")
