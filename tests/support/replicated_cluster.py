"""ReplicatedCluster: Tailrace and Kafka brokers below the same controllers, and checks of a topic's replicas."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.tailrace_controller import TailraceController
from tests.support.tailrace_process import TailraceProcess

PATIENCE_S = 60

Node = TailraceProcess | KafkaMember


@contextmanager
def frozen(node: Node) -> Iterator[None]:
    """Stop a process with SIGSTOP for a block; its connections stay open."""
    assert node.process is not None
    os.kill(node.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.process.pid, signal.SIGCONT)


def eventually(check: Callable[[], Any], what: str) -> Any:
    """Return the first true result of a check, which is repeated until then."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {PATIENCE_S} s")


class ReplicatedCluster:
    """Brokers by id. Any running broker answers questions about the cluster."""

    def __init__(self, brokers: dict[int, Node]) -> None:
        self.brokers = brokers

    @property
    def bootstrap(self) -> str:
        return ",".join(one.bootstrap for one in self.brokers.values())

    def __getitem__(self, broker_id: int) -> Node:
        return self.brokers[broker_id]

    def create(self, topic: str, replicas: Sequence[Sequence[int]], **config: str) -> None:
        """Create a topic with the given replicas for each partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        settings = {key.replace("_", "."): text for key, text in config.items()}
        wanted = NewTopic(topic, len(replicas), replica_assignment=[list(one) for one in replicas], config=settings)
        admin.create_topics([wanted])[topic].result(PATIENCE_S)
        for index, one in enumerate(replicas):
            self.await_isr(topic, index, one)

    def state(self, topic: str, partition: int) -> tuple[int, list[int]]:
        """Return (leader, ISR) of a partition, according to any broker."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        known = admin.list_topics(topic, timeout=30).topics[topic].partitions.get(partition)
        return (-1, []) if known is None else (known.leader, sorted(known.isrs))

    def await_isr(self, topic: str, partition: int, isr: Sequence[int]) -> int:
        """Wait until the ISR is as given, and return the leader."""

        def leader() -> list[int] | None:
            found, in_sync = self.state(topic, partition)
            return [found] if found >= 0 and in_sync == sorted(isr) else None

        found: list[int] = eventually(leader, f"{sorted(isr)} are in sync in {topic}-{partition}")
        return found[0]

    def kill(self, broker_id: int) -> None:
        broker = self.brokers[broker_id]
        broker.crash() if isinstance(broker, KafkaMember) else broker.kill()

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id].start()

    def await_leader(self, topic: str, partition: int, among: Sequence[int]) -> int:
        """Wait until one of some brokers leads, and return it."""

        def leader() -> list[int] | None:
            found, _ = self.state(topic, partition)
            return [found] if found in among else None

        found: list[int] = eventually(leader, f"one of {among} leads {topic}-{partition}")
        return found[0]

    def log(self, broker_id: int, topic: str, partition: int) -> bytes:
        folder = self.brokers[broker_id].data / f"{topic}-{partition}"
        return b"".join(one.read_bytes() for one in sorted(folder.glob("*.log")))

    def await_same(self, topic: str, partition: int, broker_ids: Sequence[int]) -> None:
        """Wait until the replicas have the same bytes and the same leader epochs."""

        def are_same() -> bool:
            return len({self.log(one, topic, partition) for one in broker_ids}) == 1

        eventually(are_same, f"the replicas of {topic}-{partition} are the same")


@contextmanager
def brokers_below(
    controllers: KafkaControllers | TailraceController,
    directory: Path,
    settings: Mapping[str, str],
    *,
    ours: Sequence[int] = (),
    theirs: Sequence[int] = (),
    of_one: Mapping[int, Mapping[str, str]] | None = None,
) -> Iterator[ReplicatedCluster]:
    """Start brokers with the given ids, each in a directory `broker-ID`. `of_one`: additional settings of single
    brokers.
    """
    chosen = {number: {**settings, **(of_one or {}).get(number, {})} for number in (*ours, *theirs)}
    brokers: dict[int, Node] = {}
    with ExitStack() as stack:
        for number in sorted(chosen):
            place = directory / f"broker-{number}"
            if number in ours:
                brokers[number] = stack.enter_context(kraft_broker(controllers, place, number, chosen[number]))
            else:
                brokers[number] = KafkaMember(controllers, place, number, chosen[number])
                stack.enter_context(brokers[number])
        yield ReplicatedCluster(brokers)
