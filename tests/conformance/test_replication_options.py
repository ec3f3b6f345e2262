"""Several fetchers for one leader, and throttled reassignments, between brokers of ours and Kafka's.

Brokers 1 and 2 are ours, 3 is Kafka's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.confluent import produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.replicated_cluster import Node, ReplicatedCluster, eventually
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RATE = 500_000
SIZE = 6_000_000  # bytes, so that it takes twelve seconds
BROKERS = {"num.replica.fetchers": "3", "broker.heartbeat.interval.ms": "500", "replica.fetch.backoff.ms": "200"}


@pytest.fixture(scope="module")
def cluster(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicatedCluster]:
    tmp_path = tmp_path_factory.mktemp("options")
    with ExitStack() as stack:
        controllers = stack.enter_context(KafkaControllers(kafka, tmp_path))
        brokers: dict[int, Node] = {}
        for number in (1, 2):
            broker = kraft_broker(controllers, tmp_path / f"broker-{number}", number, BROKERS)
            brokers[number] = stack.enter_context(broker)
        theirs = KafkaMember(kafka, tmp_path / "broker-3", controllers, 3, BROKERS)
        stack.enter_context(theirs)
        brokers[3] = theirs
        yield ReplicatedCluster(brokers)


def configure(kafka: KafkaInstallation, cluster: ReplicatedCluster, kind: str, name: str, *change: str) -> str:
    return kafka.tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", cluster.bootstrap, "--entity-type", kind, "--entity-name", name, *change),
        check=False,
    )


def connections(follower: TailraceProcess, leader: Node) -> int:
    """How many of its connections lead to another broker."""
    assert follower.process is not None
    sockets = {one.readlink().name for one in Path(f"/proc/{follower.process.pid}/fd").iterdir() if one.is_symlink()}
    table = Path("/proc/net/tcp").read_text().splitlines()[1:]
    wanted = f"0100007F:{leader.port:04X}"
    rows = [line.split() for line in table]
    return sum(row[2] == wanted and row[3] == "01" and f"socket:[{row[9]}]" in sockets for row in rows)


@pytest.mark.parametrize("leader", [1, 3])
def test_several_fetchers_follow_one_leader(cluster: ReplicatedCluster, leader: int) -> None:
    topic = f"many-of-{leader}"
    cluster.create(topic, [[leader, 2]] * 8)
    for partition in range(8):
        produce(cluster.bootstrap, topic, partition, [b"%d" % number for number in range(50)], acks="all")
        cluster.await_same(topic, partition, [leader, 2])
    follower = cluster[2]
    assert isinstance(follower, TailraceProcess)
    assert connections(follower, cluster[leader]) == 3


def test_the_number_of_fetchers_changes_while_brokers_run(cluster: ReplicatedCluster, kafka: KafkaInstallation) -> None:
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


def fill(cluster: ReplicatedCluster, topic: str, leader: int) -> None:
    cluster.create(topic, [[leader]])
    values = [b"%06d" % number + bytes(994) for number in range(SIZE // 1_000)]
    produce(cluster.bootstrap, topic, 0, values, **{"compression.type": "none", "batch.size": 50_000})


def reassign(kafka: KafkaInstallation, cluster: ReplicatedCluster, folder: Path, topic: str, *replicas: int) -> str:
    plan = folder / f"{topic}.json"
    moves = [{"topic": topic, "partition": 0, "replicas": list(replicas)}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    return str(plan)


def run_tool(kafka: KafkaInstallation, cluster: ReplicatedCluster, plan: str, *options: str) -> str:
    return kafka.tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        *("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", plan, *options),
    )


@pytest.mark.parametrize(("leader", "follower", "side"), [(3, 1, "follower"), (1, 3, "leader"), (1, 2, "follower")])
def test_one_side_holds_a_new_replica_to_the_rate(
    cluster: ReplicatedCluster, kafka: KafkaInstallation, tmp_path: Path, leader: int, follower: int, side: str
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
    assert took > 0.8 * SIZE / RATE, took
    cluster.await_same(topic, 0, [leader, follower])
    name = rate.partition("=")[0]
    configure(kafka, cluster, "brokers", str(held), "--alter", "--delete-config", name)


def test_kafkas_tool_throttles_a_reassignment_and_lifts_it(
    cluster: ReplicatedCluster, kafka: KafkaInstallation, tmp_path: Path
) -> None:
    fill(cluster, "moved", 1)
    plan = reassign(kafka, cluster, tmp_path, "moved", 2)
    began = time.monotonic()
    run_tool(kafka, cluster, plan, "--execute", "--throttle", str(RATE))
    cluster.await_isr("moved", 0, [2])
    took = time.monotonic() - began
    assert took > 0.8 * SIZE / RATE, took
    assert "is completed" in run_tool(kafka, cluster, plan, "--verify")
    for number in (1, 2):
        assert "throttled" not in configure(kafka, cluster, "brokers", str(number), "--describe")
