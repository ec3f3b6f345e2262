"""KIP-392 on the real network: consumers with a rack read from the replica in that rack, whichever broker leads."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import FetchRequest, ListOffsetsRequest
from tests.support.confluent import produce
from tests.support.kafka_broker import free_port
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.raw_client import RawClient
from tests.support.replicated_cluster import Node, ReplicatedCluster, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
BROKERS = {
    **SELECTOR,
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.fetch.wait.max.ms": "5000",
}
RACKS = {1: "a", 2: "b", 3: "c"}
SENT = [b"%d" % number for number in range(1_000)]


class Racks(ReplicatedCluster):
    """Brokers 1 and 3 are Tailrace, in racks a and c; 2 is Kafka, in rack b."""

    def __init__(self, brokers: dict[int, Node], metrics: dict[int, int]) -> None:
        super().__init__(brokers)
        self._metrics = metrics

    def bytes_read(self, broker_id: int, topic: str) -> float:
        """Return the bytes that consumers have fetched of a topic from a Tailrace broker."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics[broker_id]}/metrics") as page:
            lines = page.read().decode().splitlines()
        name = f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{topic}"}}'
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def cluster(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Racks]:
    tmp_path = tmp_path_factory.mktemp("racks")
    with ExitStack() as stack:
        settings = {"broker.session.timeout.ms": "3000"}
        controllers = stack.enter_context(KafkaControllers(kafka, tmp_path, properties=settings))
        brokers: dict[int, Node] = {}
        metrics = {}
        for number, rack in RACKS.items():
            chosen = {**BROKERS, "broker.rack": rack}
            if number == 2:
                theirs = KafkaMember(controllers, tmp_path / "broker-2", 2, chosen)
                stack.enter_context(theirs)
                brokers[2] = theirs
                continue
            broker = kraft_broker(controllers, tmp_path / f"broker-{number}", number, chosen)
            metrics[number] = free_port()
            broker.options += ("--metrics-port", str(metrics[number]))
            brokers[number] = stack.enter_context(broker)
        yield Racks(brokers, metrics)


class Reader:
    """A librdkafka consumer with a rack. Its statistics name the broker that it reads from."""

    def __init__(self, cluster: ReplicatedCluster, topic: str, rack: str) -> None:
        self._topic = topic
        self.read_from: set[int] = set()
        self.reads_from = -1
        self.got: list[bytes] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "none",
                "client.rack": rack,
                "enable.auto.commit": False,
                "statistics.interval.ms": 50,
                "topic.metadata.refresh.interval.ms": 2_000,
                "stats_cb": self._note,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def _note(self, text: str) -> None:
        found: dict[str, Any] = json.loads(text)["topics"].get(self._topic, {}).get("partitions", {}).get("0", {})
        if found.get("fetch_state") == "active" and found["broker"] != -1:  # -1 until the client knows the leader
            self.reads_from = found["broker"]
            self.read_from.add(self.reads_from)

    def poll(self) -> None:
        for message in self._consumer.consume(500, 0.2):
            assert message.error() is None, message.error()
            self.got.append(message.value())

    def read(self, count: int) -> None:
        def has_all() -> bool:
            self.poll()
            return len(self.got) >= count

        eventually(has_all, f"{count} records")

    def await_source(self, broker_id: int) -> None:
        def is_there() -> bool:
            self.poll()
            return self.reads_from == broker_id

        eventually(is_there, f"the client reads from {broker_id}")

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.parametrize(("leader", "closest"), [(1, 3), (1, 2), (2, 1), (3, 1)])
def test_librdkafka_reads_from_the_replica_in_its_rack(cluster: Racks, leader: int, closest: int) -> None:
    topic = f"read-at-{closest}-of-{leader}"
    cluster.create(topic, [[leader, closest]])
    produce(cluster.bootstrap, topic, 0, SENT)
    reader = Reader(cluster, topic, RACKS[closest])
    try:
        reader.read(len(SENT))
        reader.await_source(closest)
        produce(cluster.bootstrap, topic, 0, SENT)
        reader.read(2 * len(SENT))
        assert reader.got == SENT * 2
    finally:
        reader.close()
    if leader in (1, 3):
        assert cluster.bytes_read(leader, topic) == 0
    if closest in (1, 3):
        assert cluster.bytes_read(closest, topic) > len(SENT)


@pytest.mark.parametrize(("leader", "closest"), [(1, 3), (1, 2), (2, 1)])
def test_the_java_consumer_reads_from_the_replica_in_its_rack(
    cluster: Racks, kafka: KafkaInstallation, leader: int, closest: int
) -> None:
    topic = f"java-at-{closest}-of-{leader}"
    cluster.create(topic, [[leader, closest]])
    produce(cluster.bootstrap, topic, 0, SENT)
    printed = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", str(len(SENT)), "--command-property", f"client.rack={RACKS[closest]}"),
    )
    assert printed.split() == [one.decode() for one in SENT]
    if leader in (1, 3):
        assert cluster.bytes_read(leader, topic) == 0
    if closest in (1, 3):
        assert cluster.bytes_read(closest, topic) > len(SENT)


@pytest.mark.parametrize("rack", ["a", "none", ""])
def test_the_leader_serves_consumers_of_its_own_rack_and_of_racks_without_a_replica(cluster: Racks, rack: str) -> None:
    topic = f"at-the-leader-{rack}"
    cluster.create(topic, [[1, 3, 2]])
    produce(cluster.bootstrap, topic, 0, SENT)
    reader = Reader(cluster, topic, rack)
    try:
        reader.read(len(SENT))
        reader.await_source(1)
        assert reader.read_from == {1}
    finally:
        reader.close()


@pytest.mark.parametrize("leader", [1, 3])
def test_a_consumer_at_a_follower_gets_a_record_at_once(cluster: Racks, leader: int) -> None:
    """Our leader completes a waiting follower fetch when the high watermark moves, not only after its wait time (5 s
    here).
    """
    for closest in {1, 2, 3} - {leader}:
        topic = f"soon-at-{closest}-of-{leader}"
        cluster.create(topic, [[leader, closest]])
        produce(cluster.bootstrap, topic, 0, SENT)
        reader = Reader(cluster, topic, RACKS[closest])
        try:
            reader.read(len(SENT))
            reader.await_source(closest)
            took = []
            for number in range(3):
                began = time.monotonic()
                produce(cluster.bootstrap, topic, 0, [b"soon"])
                reader.read(len(SENT) + number + 1)
                took.append(time.monotonic() - began)
            assert min(took) < 2.5, took
        finally:
            reader.close()


@pytest.mark.parametrize(("leader", "closest"), [(1, 3), (2, 3), (3, 2)])
def test_a_consumer_moves_to_the_leader_when_its_replica_dies(cluster: Racks, leader: int, closest: int) -> None:
    topic = f"dies-at-{closest}-of-{leader}"
    cluster.create(topic, [[leader, closest]])
    produce(cluster.bootstrap, topic, 0, SENT)
    reader = Reader(cluster, topic, RACKS[closest])
    try:
        reader.read(len(SENT))
        reader.await_source(closest)
        cluster.kill(closest)
        produce(cluster.bootstrap, topic, 0, SENT)
        reader.read(2 * len(SENT))
        assert reader.got == SENT * 2
        cluster.start(closest)
        cluster.await_isr(topic, 0, [leader, closest])
        produce(cluster.bootstrap, topic, 0, SENT)
        reader.read(3 * len(SENT))
        assert reader.got == SENT * 3
    finally:
        reader.close()


def fetch_at(cluster: Racks, broker_id: int, topic: str, version: int, offset: int, epoch: int) -> tuple[Any, ...]:
    request: Any = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, rack_id="b")
    wanted = request.FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1_000_000
    )
    request.topics = [request.FetchTopic(topic=topic, partitions=[wanted])]
    with RawClient(cluster[broker_id].bootstrap) as client:
        (answer,) = client.ask(request, version).responses[0].partitions
    return (
        ErrorCode(answer.error_code).name,
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
        answer.preferred_read_replica,
        len(answer.records or b""),
    )


def list_at(cluster: Racks, broker_id: int, topic: str, timestamp: int, epoch: int) -> str:
    request: Any = ListOffsetsRequest(replica_id=-1)
    wanted = request.ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=timestamp)
    request.topics = [request.ListOffsetsTopic(name=topic, partitions=[wanted])]
    with RawClient(cluster[broker_id].bootstrap) as client:
        (answer,) = client.ask(request, 7).topics[0].partitions
    return ErrorCode(answer.error_code).name


def test_a_follower_answers_consumers_as_in_kafka(cluster: Racks) -> None:
    """Broker 1 (Tailrace) follows 2 (Kafka), and the other way round."""
    reported: dict[int, list[Any]] = {}
    for leader, follower in ((1, 2), (2, 1)):
        topic = f"followed-by-{follower}"
        cluster.create(topic, [[leader, follower]])
        produce(cluster.bootstrap, topic, 0, SENT[:10], **{"linger.ms": 100})
        end = len(SENT[:10])
        eventually(
            lambda topic=topic, follower=follower, end=end: fetch_at(cluster, follower, topic, 12, 0, -1)[1] == end,
            "the follower knows the high watermark",
        )
        answers: list[Any] = [
            fetch_at(cluster, follower, topic, version, offset, epoch)
            for version in (10, 11, 12)
            for offset in (0, end - 1, end, end + 1, -1)
            for epoch in (-1, 0, 1)
        ]
        answers += [list_at(cluster, follower, topic, at, epoch) for at in (-1, -2, 0) for epoch in (-1, 0, 1)]
        reported[follower] = answers
    assert reported[1] == reported[2]
    assert {one[0] for one in reported[1] if isinstance(one, tuple)} >= {
        "NONE",
        "NOT_LEADER_OR_FOLLOWER",
        "OFFSET_OUT_OF_RANGE",
        "UNKNOWN_LEADER_EPOCH",
    }
