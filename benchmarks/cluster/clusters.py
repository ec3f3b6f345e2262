"""The two clusters: three brokers of one kind below one Apache Kafka controller, each a process.

Only one of them runs at a time. Replicas are assigned explicitly: broker 1 leads, 2 and 3 follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.broker.comparison import KAFKA, OURS
from benchmarks.broker.contenders import cpu_s, production_installation
from benchmarks.cluster.producing import producer_for
from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import DiskFiles
from tests.support.kafka_controllers import KafkaControllers, _new_id
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.tailrace_process import TailraceProcess

BROKERS: Final = (1, 2, 3)
LEADER: Final = 1
PATIENCE_S: Final = 120.0
BOTH: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "50",
}
# The values of Kafka's own server.properties; the tests use smaller ones.
ONLY_KAFKA: Final = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "background.threads": "10",
    "log.cleaner.dedupe.buffer.size": "134217728",
}

Node = TailraceProcess | KafkaMember


class Cluster:
    def __init__(self, kind: str, directory: Path, controllers: KafkaControllers, brokers: dict[int, Node]) -> None:
        self.kind = kind
        self.directory = directory
        self.controllers = controllers
        self.brokers = brokers
        self.is_warm = kind == OURS  # only just-in-time compilers need a warm-up
        self._topics = 0
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})

    @property
    def bootstrap(self) -> str:
        return ",".join(one.bootstrap for one in self.brokers.values())

    def pid(self, broker_id: int) -> int:
        process = self.brokers[broker_id].process
        assert process is not None
        return process.pid

    def pids(self, broker_id: int) -> list[int]:
        """Return the ids of a broker's process and its children."""
        pid = self.pid(broker_id)
        threads = Path(f"/proc/{pid}/task").glob("*/children")
        return [pid, *(int(child) for one in threads for child in one.read_text().split())]

    def cpu_s(self) -> dict[int, float]:
        return {broker_id: sum(map(cpu_s, self.pids(broker_id))) for broker_id in self.brokers}

    def kill(self, broker_id: int) -> None:
        one = self.brokers[broker_id]
        one.crash() if isinstance(one, KafkaMember) else one.kill()

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id].start()

    # Topics

    def new_topic(self, name: str, replicas: Sequence[Sequence[int]] = (BROKERS,), **config: str) -> str:
        """Create a topic with the given replicas, wait until all are in sync, and write a record to each partition.

        The load generator does not retry, so the topic must be ready.
        """
        self._topics += 1
        topic = f"{name}-{self._topics}"
        settings = {key.replace("_", "."): text for key, text in config.items()}
        wanted = NewTopic(topic, len(replicas), replica_assignment=[list(one) for one in replicas], config=settings)
        self._admin.create_topics([wanted])[topic].result(PATIENCE_S)
        for index, one in enumerate(replicas):
            self.await_isr(topic, one, index)
        producer = producer_for(self.bootstrap)
        for index in range(len(replicas)):
            producer.produce(topic, b"first", partition=index)
        if producer.flush(PATIENCE_S):
            raise RuntimeError(f"{topic} takes no records")
        return topic

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(PATIENCE_S)

    def state(self, topic: str, partition: int = 0) -> tuple[int, list[int]]:
        known = self._admin.list_topics(topic, timeout=30).topics[topic].partitions.get(partition)
        return (-1, []) if known is None else (known.leader, sorted(known.isrs))

    def await_isr(self, topic: str, isr: Sequence[int], partition: int = 0) -> None:
        def is_so() -> bool:
            leader, in_sync = self.state(topic, partition)
            return leader >= 0 and in_sync == sorted(isr)

        eventually(is_so, f"{sorted(isr)} are in sync in {topic}-{partition}")

    def lead_again(self, topic: str) -> None:
        """Elect the first replica as the leader."""
        wanted = TopicPartition(topic, 0)

        def is_so() -> bool:
            self._admin.elect_leaders(ElectionType.PREFERRED, [wanted]).result(PATIENCE_S)
            return self.state(topic)[0] == LEADER

        eventually(is_so, f"{LEADER} leads {topic}")


def eventually(is_so: Callable[[], Any], what: str, every_s: float = 0.05) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(every_s)


@contextmanager
def running(kind: str, directory: Path) -> Iterator[Cluster]:
    installation = production_installation()
    controllers = KafkaControllers(installation, directory, is_formatted_here=True)
    controllers.nodes[0].heap = "1g"
    brokers: dict[int, Node] = {}
    with controllers:
        try:
            for number in BROKERS:
                make = _of_kafka if kind == KAFKA else _of_ours
                brokers[number] = make(controllers, directory / f"broker-{number}", number)
            with ThreadPoolExecutor(len(BROKERS)) as pool:
                list(pool.map(lambda one: one.start(), brokers.values()))
            yield Cluster(kind, directory, controllers, brokers)
        finally:
            for one in brokers.values():
                if one.process is not None:
                    one.crash() if isinstance(one, KafkaMember) else one.kill()


def _of_ours(controllers: KafkaControllers, data: Path, number: int) -> Node:
    return kraft_broker(controllers, data, number, BOTH)


def _of_kafka(controllers: KafkaControllers, directory: Path, number: int) -> Node:
    broker = KafkaMember(controllers, directory, number, {**BOTH, **ONLY_KAFKA})
    broker.heap = "1g"
    # The work of `kafka-storage format` for a broker, without a JVM.
    broker.data.mkdir(parents=True)
    identity = DirectoryIdentity(controllers.cluster_id, number, _new_id())
    identity.write(DiskFiles(), str(broker.data / "meta.properties"))
    return broker
