"""ChaosCluster: controllers and brokers as processes. All their connections go through links that can be cut.

Brokers have two listeners: PLAINTEXT for clients, INTERNAL for each other. The advertised ports of brokers and
controllers are ports of a proxy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.protocol.messages import DescribeQuorumRequest
from tests.chaos.findings import Late
from tests.chaos.links import CLEAR, Links, Weather
from tests.chaos.nodes import Node
from tests.chaos.owners import owner_of
from tests.chaos.plan import CLIENTS
from tests.support.kafka_broker import free_port
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.raw_client import RawClient
from tests.support.tailrace_controller import TailraceController

PATIENCE_S: Final = 180.0
CONTROLLER_SETTINGS: Final = {"broker.session.timeout.ms": "5000", "broker.heartbeat.interval.ms": "1000"}
BROKER_SETTINGS: Final = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "1000",
    "initial.broker.registration.timeout.ms": "3600000",
    "replica.fetch.backoff.ms": "200",
    "replica.fetch.wait.max.ms": "250",
    "replica.lag.time.max.ms": "4000",
    "replica.socket.timeout.ms": "5000",
}


@dataclass(frozen=True, slots=True)
class Shape:
    controllers: int = 1
    brokers: int = 3
    java_brokers: int = 0  # the last brokers of the cluster
    is_ours: bool = False  # the only controller is Tailrace's, not Apache Kafka's

    def __str__(self) -> str:
        ours = self.brokers - self.java_brokers
        controllers = "a Tailrace controller" if self.is_ours else f"{self.controllers} controllers"
        return f"{controllers}, {ours} Tailrace brokers, {self.java_brokers} of Kafka's"


class ChaosCluster:
    def __init__(self, installation: KafkaInstallation, directory: Path, shape: Shape) -> None:
        self.directory = directory
        self.nodes: dict[str, Node] = {}
        self.links = Links(self._opened_by)
        self.controllers = self._controllers(installation, shape)
        for one in self.controllers.nodes:
            self.nodes[str(one.node_id)] = Node(str(one.node_id), one, is_controller=True)
        self.bootstrap = ""
        for number in range(1, shape.brokers + 1):
            self._add_broker(number, is_java=number > shape.brokers - shape.java_brokers)

    def _controllers(self, installation: KafkaInstallation, shape: Shape) -> KafkaControllers | TailraceController:
        def through(node_id: int, port: int) -> int:
            return self.links.lead_to(str(node_id), port)

        if shape.is_ours:
            return TailraceController(installation, self.directory, properties=CONTROLLER_SETTINGS, through=through)
        return KafkaControllers(
            installation,
            self.directory,
            count=shape.controllers,
            properties=CONTROLLER_SETTINGS,
            is_formatted_here=shape.controllers == 1,
            through=through,
        )

    def _add_broker(self, number: int, *, is_java: bool) -> None:
        name, port, internal = str(number), free_port(), free_port()
        outside = self.links.lead_to(name, port, source=CLIENTS)
        settings = {
            **BROKER_SETTINGS,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal}",
            "advertised.listeners": (
                f"PLAINTEXT://127.0.0.1:{outside},INTERNAL://127.0.0.1:{self.links.lead_to(name, internal)}"
            ),
        }
        data = self.directory / f"broker-{name}"
        if is_java:
            member = KafkaMember(self.controllers, data, number, settings)
            member.port = port
            self.nodes[name] = Node(name, member)
        else:
            self.nodes[name] = Node(name, kraft_broker(self.controllers, data, number, settings))
        self.bootstrap += ("," if self.bootstrap else "") + f"127.0.0.1:{outside}"

    @property
    def brokers(self) -> list[Node]:
        return [one for one in self.nodes.values() if not one.is_controller]

    # Processes

    def start(self) -> None:
        for node in self.nodes.values():
            if node.is_controller:
                node.server.start()
        for node in self.brokers:
            node.launch()
        await_so(lambda: len(self._known_brokers()) == len(self.brokers), "all brokers are registered")

    def _known_brokers(self) -> set[int]:
        ended = {one.name: one.exit_status for one in self.nodes.values() if one.exit_status is not None}
        assert not ended, f"ended by themselves: {ended}"
        return set(self.admin().list_topics(timeout=10).brokers)

    def close(self) -> None:
        for node in self.nodes.values():
            if node.is_running:
                node.kill()
        self.links.close()

    def _opened_by(self, port: int, far_port: int) -> str:
        names = {node.pid: node.name for node in self.nodes.values() if node.pid is not None}
        pid = owner_of(port, far_port, names)
        return CLIENTS if pid is None else names[pid]

    def active_controller(self) -> Node | None:
        topic = DescribeQuorumRequest.TopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
        )
        for node in self.nodes.values():
            if not node.is_controller or not node.is_running or node.is_paused:
                continue
            try:
                with RawClient(f"127.0.0.1:{node.server.port}", timeout_s=3) as client:
                    answer: Any = client.ask(DescribeQuorumRequest(topics=[topic]), 1)
            except OSError:
                continue
            if not answer.error_code and not answer.topics[0].partitions[0].error_code:
                return node
        return None

    def set_weather(self, source: str, target: str, weather: Weather) -> None:
        self.links.set(source, target, weather)

    def clear_weather(self) -> None:
        for source in [*self.nodes, CLIENTS]:
            for target in self.nodes:
                self.links.set(source, target, CLEAR)

    # Topics

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        wanted = NewTopic(topic, partitions, len(self.brokers), config=config)
        admin = self.admin()
        admin.create_topics([wanted])[topic].result(60)

    def partitions(self) -> dict[tuple[str, int], tuple[int, list[int]]]:
        """Return (leader, in-sync replicas) of every partition."""
        topics = self.admin().list_topics(timeout=30).topics
        return {
            (name, number): (one.leader, sorted(one.isrs))
            for name, topic in topics.items()
            for number, one in topic.partitions.items()
        }

    def await_in_sync(self) -> None:
        everybody = sorted(int(one.name) for one in self.brokers)
        lagging: dict[Any, Any] = {}

        def are_in_sync() -> bool:
            lagging.clear()
            lagging.update({key: one for key, one in self.partitions().items() if one[1] != everybody})
            return not lagging

        await_so(are_in_sync, "every replica is in sync", lambda: f"{lagging}")

    def await_same_bytes(self) -> int:
        """Wait until the replicas of every partition have the same bytes. Return the number of partitions."""
        partitions = sorted(self.partitions())
        different: list[str] = []

        def are_same() -> bool:
            different[:] = [f"{topic}-{one}" for topic, one in partitions if len(self._copies(topic, one)) != 1]
            return not different

        try:
            await_so(are_same, "replicas have the same bytes", lambda: f"these differ: {different}")
        except Late as late:
            raise AssertionError(str(late)) from late  # the replicas are in sync, so waiting longer would not help
        return len(partitions)

    def _copies(self, topic: str, partition: int) -> set[bytes]:
        return {_log_bytes(one.server.data / f"{topic}-{partition}") for one in self.brokers}


def await_so(
    condition: Callable[[], bool],
    what: str,
    otherwise: Callable[[], str] = lambda: "",
    *,
    patience_s: float = PATIENCE_S,
) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except KafkaException:
            pass  # no broker responds at the moment
        time.sleep(0.3)
    raise Late(f"{what}: not true after {patience_s:g} s. {otherwise()}")


def _log_bytes(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in sorted(folder.glob("*.log")))
