"""Several fetchers for one leader, throttled reassignments, and log directories, between Tailrace and Kafka brokers.

Brokers 1 and 2 are Tailrace, 3 is Kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from tests.support.both_controllers import KINDS, Controllers, controllers_of
from tests.support.confluent import consume, produce
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.raw_client import RawClient
from tests.support.replicated_cluster import PATIENCE_S, Node, ReplicatedCluster, brokers_below, eventually
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RATE = 500_000
WINDOWS = 3
SIZE = 6_000_000  # bytes; replicating them takes twelve seconds
# The rate is measured over the last windows: a sender that was idle may send at once what the windows allow, also in
# Kafka.
SECONDS_MIN = 0.8 * (SIZE - WINDOWS * RATE) / RATE
CONTROLLERS = {"leader.imbalance.check.interval.seconds": "1", "leader.imbalance.per.broker.percentage": "0"}
BROKERS = {
    "num.replica.fetchers": "3",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replication.quota.window.num": str(WINDOWS),
}


class Cluster(ReplicatedCluster):
    def __init__(self, brokers: dict[int, Node], controllers: Controllers) -> None:
        super().__init__(brokers)
        self.controllers = controllers


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    tmp_path = tmp_path_factory.mktemp("options")
    with (
        controllers_of(request.param, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=[1, 2], theirs=[3]) as cluster,
    ):
        yield Cluster(cluster.brokers, controllers)


@pytest.fixture(scope="module", params=KINDS)
def directories(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Start brokers 2 and 3 with two log directories each."""
    tmp_path = tmp_path_factory.mktemp("directories")
    with ExitStack() as stack:
        settings = {"broker.session.timeout.ms": "3000"}
        controllers = stack.enter_context(controllers_of(request.param, kafka, tmp_path, properties=settings))
        broker = kraft_broker(controllers, tmp_path / "broker-2", 2, BROKERS)
        broker.options += ("--data", f"{tmp_path / 'broker-2'}-other")
        stack.enter_context(broker)
        place = tmp_path / "broker-3" / "data"
        theirs = KafkaMember(controllers, tmp_path / "broker-3", 3, {**BROKERS, "log.dirs": f"{place},{place}-other"})
        stack.enter_context(theirs)
        yield Cluster({2: broker, 3: theirs}, controllers)


def configure(kafka: KafkaInstallation, cluster: Cluster, kind: str, name: str, *change: str) -> str:
    return kafka.tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", cluster.bootstrap, "--entity-type", kind, "--entity-name", name, *change),
        check=False,
    )


def connections(follower: TailraceProcess, leader: Node) -> int:
    """Return the number of connections from one broker to another."""
    assert follower.process is not None
    sockets = {one.readlink().name for one in Path(f"/proc/{follower.process.pid}/fd").iterdir() if one.is_symlink()}
    table = Path("/proc/net/tcp").read_text().splitlines()[1:]
    wanted = f"0100007F:{leader.port:04X}"
    rows = [line.split() for line in table]
    return sum(row[2] == wanted and row[3] == "01" and f"socket:[{row[9]}]" in sockets for row in rows)


@pytest.mark.parametrize("leader", [1, 3])
def test_several_fetchers_follow_one_leader(cluster: Cluster, leader: int) -> None:
    topic = f"many-of-{leader}"
    cluster.create(topic, [[leader, 2]] * 8)
    for partition in range(8):
        produce(cluster.bootstrap, topic, partition, [b"%d" % number for number in range(50)], acks="all")
        cluster.await_same(topic, partition, [leader, 2])
    follower = cluster[2]
    assert isinstance(follower, TailraceProcess)
    assert connections(follower, cluster[leader]) == 3


def test_the_number_of_fetchers_changes_while_brokers_run(cluster: Cluster, kafka: KafkaInstallation) -> None:
    cluster.create("resized", [[1, 2]] * 16)
    follower = cluster[2]
    assert isinstance(follower, TailraceProcess)
    eventually(lambda: connections(follower, cluster[1]) == 3, "three fetchers")
    for wanted in (6, 3):
        configure(kafka, cluster, "brokers", "2", "--alter", "--add-config", f"num.replica.fetchers={wanted}")
        eventually(lambda wanted=wanted: connections(follower, cluster[1]) == wanted, f"{wanted} fetchers")
        for partition in range(16):
            produce(cluster.bootstrap, "resized", partition, [b"x"], acks="all")
    described = configure(kafka, cluster, "brokers", "2", "--describe")
    assert "num.replica.fetchers=3 sensitive=false" in described
    configure(kafka, cluster, "brokers", "2", "--alter", "--add-config", "num.replica.fetchers=7")
    assert "num.replica.fetchers=3 sensitive=false" in configure(kafka, cluster, "brokers", "2", "--describe")
    for partition in range(16):
        cluster.await_same("resized", partition, [1, 2])


def fill(cluster: Cluster, topic: str, leader: int) -> None:
    cluster.create(topic, [[leader]])
    values = [b"%06d" % number + bytes(994) for number in range(SIZE // 1_000)]
    produce(cluster.bootstrap, topic, 0, values, **{"compression.type": "none", "batch.size": 50_000})


def reassign(kafka: KafkaInstallation, cluster: Cluster, folder: Path, topic: str, *replicas: int) -> str:
    plan = folder / f"{topic}.json"
    moves = [{"topic": topic, "partition": 0, "replicas": list(replicas)}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    return str(plan)


def run_tool(kafka: KafkaInstallation, cluster: Cluster, plan: str, *options: str) -> str:
    return kafka.tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        *("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", plan, *options),
    )


@pytest.mark.parametrize(
    ("leader", "follower", "side"), [(3, 1, "follower"), (1, 3, "leader"), (3, 1, "leader"), (1, 2, "follower")]
)
def test_a_throttle_on_one_side_limits_a_new_replica(
    cluster: Cluster, kafka: KafkaInstallation, tmp_path: Path, leader: int, follower: int, side: str
) -> None:
    topic = f"slow-{side}-{leader}-{follower}"
    fill(cluster, topic, leader)
    held = follower if side == "follower" else leader
    rate = f"{side}.replication.throttled.rate={RATE}"
    configure(kafka, cluster, "brokers", str(held), "--alter", "--add-config", rate)
    named = f"{side}.replication.throttled.replicas=[0:{held}]"
    configure(kafka, cluster, "topics", topic, "--alter", "--add-config", named)
    began = time.monotonic()
    run_tool(kafka, cluster, reassign(kafka, cluster, tmp_path, topic, leader, follower), "--execute")
    cluster.await_isr(topic, 0, [leader, follower])
    took = time.monotonic() - began
    assert took > SECONDS_MIN, took
    cluster.await_same(topic, 0, [leader, follower])
    name = rate.partition("=")[0]
    configure(kafka, cluster, "brokers", str(held), "--alter", "--delete-config", name)


def test_kafkas_tool_throttles_a_reassignment_and_removes_the_throttle(
    cluster: Cluster, kafka: KafkaInstallation, tmp_path: Path
) -> None:
    fill(cluster, "moved", 1)
    plan = reassign(kafka, cluster, tmp_path, "moved", 2)
    began = time.monotonic()
    run_tool(kafka, cluster, plan, "--execute", "--throttle", str(RATE))
    cluster.await_isr("moved", 0, [2])
    took = time.monotonic() - began
    assert took > SECONDS_MIN, took
    assert "is completed" in run_tool(kafka, cluster, plan, "--verify")
    for number in (1, 2):
        assert "throttled" not in configure(kafka, cluster, "brokers", str(number), "--describe")


def places(cluster: Cluster, broker_id: int, topic: str) -> list[str]:
    """Return the log directories of a topic by their last name; a moving replica has a future one."""
    request = DescribeLogDirsRequest(topics=None)
    with RawClient(cluster[broker_id].bootstrap) as client:
        results = client.ask(request, 4).results
    return [
        ("future " if one.is_future_key else "") + ("other" if result.log_dir.endswith("-other") else "first")
        for result in results
        for reported in result.topics
        for one in reported.partitions
        if reported.name == topic
    ]


def cordoned(cluster: Cluster, broker_id: int) -> set[str]:
    with RawClient(cluster[broker_id].bootstrap) as client:
        results = client.ask(DescribeLogDirsRequest(topics=None), 5).results
    return {"other" if one.log_dir.endswith("-other") else "first" for one in results if one.is_cordoned}


def move(cluster: Cluster, broker_id: int, topic: str, to: str) -> str:
    request = AlterReplicaLogDirsRequest()
    path = f"{cluster[broker_id].data}{'-other' if to == 'other' else ''}"
    wanted = request.AlterReplicaLogDirTopic(name=topic, partitions=[0])
    request.dirs = [request.AlterReplicaLogDir(path=path, topics=[wanted])]
    with RawClient(cluster[broker_id].bootstrap) as client:
        return ErrorCode(client.ask(request, 2).results[0].partitions[0].error_code).name


@pytest.mark.parametrize("broker_id", [2, 3])
def test_cordoned_directories_get_no_new_partitions(
    directories: Cluster, kafka: KafkaInstallation, broker_id: int
) -> None:
    """Step by step the same at Kafka's broker and at ours."""
    cluster = directories
    first, other = str(cluster[broker_id].data), f"{cluster[broker_id].data}-other"

    def cordon(value: str) -> None:
        change = ("--alter", "--add-config", f"cordoned.log.dirs=[{value}]")
        configure(kafka, cluster, "brokers", str(broker_id), *change)

    cordon(first)
    eventually(lambda: cordoned(cluster, broker_id) == {"first"}, "the first directory is cordoned")
    cluster.create(f"cordoned-{broker_id}", [[broker_id]] * 4)
    eventually(
        lambda: places(cluster, broker_id, f"cordoned-{broker_id}") == ["other"] * 4,
        "all partitions are in the other directory",
    )
    assert move(cluster, broker_id, f"cordoned-{broker_id}", "first") == "INVALID_REPLICA_ASSIGNMENT"
    cordon("*")
    eventually(lambda: cordoned(cluster, broker_id) == {"first", "other"}, "both are cordoned")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for number in range(3):
        name = f"elsewhere-{broker_id}-{number}"
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(PATIENCE_S)
        eventually(lambda name=name: len(admin.list_topics(name, 30).topics[name].partitions) == 2, "it is there")
        replicas = {
            one for part in admin.list_topics(name, 30).topics[name].partitions.values() for one in part.replicas
        }
        assert broker_id not in replicas
    cordon(other)
    eventually(lambda: cordoned(cluster, broker_id) == {"other"}, "the other directory is cordoned")
    assert move(cluster, broker_id, f"cordoned-{broker_id}", "first") == "NONE"
    wanted = ["first"] + ["other"] * 3
    eventually(lambda: sorted(places(cluster, broker_id, f"cordoned-{broker_id}")) == wanted, "it has moved")
    configure(kafka, cluster, "brokers", str(broker_id), "--alter", "--delete-config", "cordoned.log.dirs")
    eventually(lambda: cordoned(cluster, broker_id) == set(), "none is cordoned")


def test_a_directory_move_waits_for_the_controllers(directories: Cluster) -> None:
    """While no controller responds, the log stays in its directory and accepts writes, also after a crash."""
    cluster = directories
    cluster.create("waiting", [[2]])
    sent = [b"%d" % number for number in range(100)]
    produce(cluster[2].bootstrap, "waiting", 0, sent)
    eventually(lambda: len(places(cluster, 2, "waiting")) == 1, "it is there")
    (source,) = places(cluster, 2, "waiting")
    target = "first" if source == "other" else "other"
    controllers = cluster.controllers.nodes
    for node in controllers:
        node.crash()
    assert move(cluster, 2, "waiting", target) == "NONE"
    moving = sorted([source, f"future {target}"])
    eventually(lambda: sorted(places(cluster, 2, "waiting")) == moving, "the move is in progress")
    # Any broker may be asked for a producer id, and a broker without ids asks the controllers.
    produce(cluster[2].bootstrap, "waiting", 0, sent, **{"enable.idempotence": False})
    time.sleep(2)
    assert sorted(places(cluster, 2, "waiting")) == moving
    cluster.kill(2)
    for node in controllers:
        node.start()
    cluster.start(2)
    eventually(lambda: places(cluster, 2, "waiting") == [target], "it has moved")
    assert [one.value for one in consume(cluster.bootstrap, "waiting", 0)] == sent * 2


def test_the_preferred_leader_is_elected_automatically(cluster: Cluster) -> None:
    """The controllers do this, with auto.leader.rebalance.enable."""
    cluster.create("balanced", [[1, 2], [3, 1]])
    for broker_id, partition in ((1, 0), (3, 1)):
        other = {0: 2, 1: 1}[partition]
        broker = cluster[broker_id]
        broker.stop()
        cluster.await_leader("balanced", partition, [other])
        broker.start()
        cluster.await_leader("balanced", partition, [broker_id])
        produce(cluster.bootstrap, "balanced", partition, [b"x"])
        cluster.await_same("balanced", partition, [broker_id, other])
