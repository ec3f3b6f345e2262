"""Two clusters of three brokers, one all Apache Kafka and one with Tailrace brokers, to run Kafka's tools against.

    with cluster_twins(kafka, oracle, directory) as twins:
        twins.same("org.apache.kafka.tools.TopicCommand", "--list")

Values that must differ (ids, ports, directories) are replaced by words. The brokers of a cluster learn a change a
moment later, so a read-only tool is run until both clusters give the same output, for a limited time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.confluent import produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.log_oracle import LogOracle

AGREE_WITHIN_S = 60.0
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
    "broker.heartbeat.interval.ms": "500",
}
_ID = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")


def lines(text: str) -> list[str]:
    """Return the lines that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


class Printed(NamedTuple):
    status: int
    text: str


class Cluster:
    """The brokers of a cluster by id, each with start, stop, port and data."""

    def __init__(self, name: str, controllers: KafkaControllers, brokers: Mapping[int, Any]) -> None:
        self.name = name
        self.controllers = controllers
        self.brokers = brokers

    @property
    def running(self) -> list[Any]:
        return [broker for broker in self.brokers.values() if broker.process is not None]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.running)

    def plain(self, text: str) -> str:
        """Return the text without ports, folders and ids."""
        for number, broker in self.brokers.items():
            text = text.replace(str(broker.data), f"DATA{number}").replace(str(broker.port), f"PORT{number}")
        for node in self.controllers.nodes:
            text = text.replace(str(node.port), f"CONTROLLER{node.node_id}")
        return _ID.sub("ID", text)


class ClusterTwins:
    def __init__(self, oracle: LogOracle, kafka: Cluster, ours: Cluster) -> None:
        self.oracle = oracle
        self.kafka = kafka
        self.ours = ours

    @property
    def both(self) -> tuple[Cluster, Cluster]:
        return self.ours, self.kafka

    def run(self, cluster: Cluster, tool: str, *arguments: str) -> Printed:
        server = ["--bootstrap-server", cluster.bootstrap]
        where = 1 if tool.endswith("ClusterTool") else 0  # after its verb
        line = [*arguments[:where], *server, *arguments[where:]]
        status, text = self.oracle.call("tool", **{"class": tool, "arguments": line})
        return Printed(int(status), cluster.plain(str(text)))

    def same(self, tool: str, *arguments: str, view: Callable[[str], Any] = lines) -> Any:
        """Run a read-only tool at both until they agree. Return the common output, or `view` of it."""
        deadline = time.monotonic() + AGREE_WITHIN_S
        while True:
            ours, kafka = (self.run(cluster, tool, *arguments) for cluster in self.both)
            views = (ours.status, view(ours.text)), (kafka.status, view(kafka.text))
            if views[0] == views[1] or time.monotonic() > deadline:
                assert views[0] == views[1]
                return views[0][1]
            time.sleep(0.2)

    def becomes(self, expected: Any, tool: str, *arguments: str, view: Callable[[str], Any] = lines) -> None:
        """Run a read-only tool at both until the output is as expected."""
        deadline = time.monotonic() + AGREE_WITHIN_S
        for cluster in self.both:
            while (found := view(self.run(cluster, tool, *arguments).text)) != expected:
                assert time.monotonic() < deadline, f"{cluster.name}: {found} and not {expected}"
                time.sleep(0.2)

    def both_do(self, tool: str, *arguments: str, view: Callable[[str], Any] = lines) -> Any:
        """Run a tool that changes something, once at each cluster. Both must print the same."""
        ours, kafka = (self.run(cluster, tool, *arguments) for cluster in self.both)
        assert (ours.status, view(ours.text)) == (kafka.status, view(kafka.text))
        return view(ours.text)

    def produce(self, topic: str, partition: int, values: list[bytes]) -> None:
        for cluster in self.both:
            produce(cluster.bootstrap, topic, partition, values)

    def stop(self, number: int) -> None:
        for cluster in self.both:
            cluster.brokers[number].stop()

    def start(self, number: int) -> None:
        for cluster in self.both:
            cluster.brokers[number].start()


@contextmanager
def cluster_twins(kafka: KafkaInstallation, oracle: LogOracle, directory: Path) -> Iterator[ClusterTwins]:
    decided = {key: SETTINGS[key] for key in ("auto.leader.rebalance.enable",)}
    with ExitStack() as stack:
        clusters = []
        for name in ("kafka", "ours"):
            controllers = stack.enter_context(KafkaControllers(kafka, directory / name, properties=decided))
            brokers: dict[int, Any] = {}
            for number in (1, 2, 3):
                folder = directory / name / f"broker-{number}"
                settings = {**SETTINGS, "broker.rack": f"rack-{number}"}
                if name == "kafka":
                    brokers[number] = KafkaMember(controllers, folder, number, settings)
                else:
                    brokers[number] = kraft_broker(controllers, folder, number, settings)
                stack.enter_context(brokers[number])
            clusters.append(Cluster(name, controllers, brokers))
        yield ClusterTwins(oracle, *clusters)
