"""Cluster: several brokers and their controller inside a Python process, for tests.

    with tailrace.Cluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=6)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        …
        cluster.leader("orders", 0).crash()
        cluster.cut(cluster.brokers[0], cluster.controller)

Each broker is a `tailrace.Broker`, with all its methods, and so is `cluster.controller`. Everything is in one temporary
directory, which is removed at the end. Topics get three replicas, and `acks=all` needs two of them. A smaller cluster
has fewer replicas.

With `controllers="kafka"`, or a number, the controllers are Apache Kafka's: Java processes on free ports. If this
process ends without `close`, a guard process kills them and removes the directory.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tailrace.embedded.broker import Broker, NotRunning, property_text
from tailrace.java import JavaMissing, find_java
from tailrace.local_cluster.cluster_plan import (
    FIRST_BROKER,
    FIRST_CONTROLLER,
    HOST,
    CannotPlan,
    ClusterPlan,
    Controllers,
    Node,
    controller_port,
    plan_cluster,
)
from tailrace.local_cluster.kafka_program import KafkaProgram, NoKafka, controller_jars, installed_jars
from tailrace.local_cluster.local_cluster import CannotStart, LocalCluster
from tailrace.local_cluster.maven import VARIABLE, CannotFetch, MavenRepository
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import InvalidConfig
from tailrace.server.peers.outgoing_security import client_id_of

_log = logging.getLogger(__name__)
_TIMEOUT_S: Final = 60
_POLL_S: Final = 0.01
# Below the ports that systems give to outgoing connections.
_PORTS: Final = range(20_000, 31_000)
# Defaults of a cluster inside a process: a crashed broker is fenced soon, and internal topics are small.
_QUICK: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "50",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
# The plan sets the addresses of a `tailrace cluster up`; here each broker picks its own.
_PLACE: Final = frozenset({"listeners", "log.dirs"})
# The guard reads its standard input, which ends with the process that started it.
_GUARD: Final = 'directory=$1; shift; cat; kill -KILL "$@"; rm -rf "$directory"'


class ClusterUnavailable(Exception):
    """The cluster cannot start here. The message has the reason: no Java, no jars, no free ports or a wrong setting."""


class Cluster:
    def __init__(
        self,
        brokers: int = 3,
        *,
        controllers: int | str | None = None,
        kafka_home: str | PathLike[str] | None = None,
        config: Mapping[str, object] | None = None,
        **settings: object,
    ) -> None:
        """`controllers` is `tailrace` (default), `kafka`, or a number of Kafka's. `kafka_home` implies Kafka's."""
        if brokers < 1:
            raise ValueError(f"a cluster of {brokers} brokers: it must have at least 1")
        if controllers is None:
            controllers = "tailrace" if kafka_home is None else "kafka"
        kinds = Controllers.of(controllers)
        if kafka_home is not None and not kinds.is_kafka:
            raise ValueError("kafka_home is for Apache Kafka's controllers: give controllers='kafka'")
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self._properties = {key: property_text(value) for key, value in {**(config or {}), **named}.items()}
        self._sizes = (brokers, kinds)
        self._kafka_home = None if kafka_home is None else Path(kafka_home).absolute()
        self._brokers: tuple[Broker, ...] = ()
        self._controller: Broker | None = None  # None: the controllers are Apache Kafka's
        self._controllers: LocalCluster | None = None
        self._resources = ExitStack()

    # Address

    @property
    def brokers(self) -> tuple[Broker, ...]:
        """All brokers, also stopped ones: brokers[0] has the node id 1."""
        if not self._brokers:
            raise NotRunning("the cluster is not running")
        return self._brokers

    @property
    def controller(self) -> Broker:
        """The controller, which may crash and restart like a broker. Raise ValueError if it is Apache Kafka's."""
        if not self._brokers:
            raise NotRunning("the cluster is not running")
        if self._controller is None:
            raise ValueError("the controllers are Apache Kafka's: see controller_pids")
        return self._controller

    @property
    def controller_pids(self) -> list[int]:
        """The ids of the processes of Apache Kafka's controllers, for tests that kill one."""
        if not self._brokers:
            raise NotRunning("the cluster is not running")
        return [] if self._controllers is None else [one.pid for one in self._controllers.processes]

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def bootstrap_servers(self) -> str:
        """The same as `bootstrap`, by Kafka's name."""
        return self.bootstrap

    def client_settings(self, client: str = "librdkafka") -> dict[str, Any]:
        """Return the settings of a client. `client` is librdkafka, kafka-python, aiokafka or java."""
        (name,) = self.brokers[0].client_settings(client)
        return {name: self.bootstrap}

    # Start and stop

    def start(self) -> Self:
        """Start the controller and the brokers. Clients can connect when this returns.

        Raise ClusterUnavailable if a setting is wrong, or if Kafka's controllers are requested and there is no Java or
        their jars cannot be downloaded.
        """
        if self._brokers:
            raise RuntimeError("the cluster is running already")
        try:
            self._start()
        except (JavaMissing, NoKafka, CannotPlan, CannotFetch, CannotStart, InvalidConfig) as error:
            raise ClusterUnavailable(str(error)) from error
        return self

    def _start(self) -> None:
        with ExitStack() as started:
            directory = Path(tempfile.mkdtemp(prefix="tailrace-cluster-"))
            started.callback(shutil.rmtree, directory, ignore_errors=True)
            plan = self._plan(directory)
            controller, controllers = None, None
            if plan.has_kafka:
                controllers = LocalCluster(replace(plan, brokers=()), self._kafka(), _log.info)
                started.callback(controllers.stop)
                controllers.start()
            started.enter_context(_Guard(directory, [one.pid for one in controllers.processes] if controllers else []))
            if controllers is None:
                controller = _embedded(plan.controllers[0], {"log.dirs"})
                started.callback(_crash_if_running, controller)
                controller.start()
            brokers = tuple(_embedded(node, _PLACE) for node in plan.brokers)
            for broker in brokers:
                started.callback(_crash_if_running, broker)
            with ThreadPoolExecutor(len(brokers)) as threads:
                list(threads.map(Broker.start, brokers))
            for broker in brokers:
                _await_peers(broker, len(brokers))
            self._brokers, self._controller, self._controllers = brokers, controller, controllers
            self._resources = started.pop_all()

    def _plan(self, directory: Path) -> ClusterPlan:
        brokers, controllers = self._sizes
        port = _free_ports(controllers.size)
        overrides = {**_QUICK, **self._properties}
        return plan_cluster(directory, brokers=brokers, controllers=controllers, port=port, overrides=overrides)

    def _kafka(self) -> KafkaProgram:
        java = find_java("A controller of Apache Kafka")
        if self._kafka_home is not None:
            return KafkaProgram(java, tuple(installed_jars(self._kafka_home)))
        try:
            return KafkaProgram(java, tuple(MavenRepository.chosen().fetch(controller_jars().artifacts)))
        except CannotFetch as error:
            remedy = f"set {VARIABLE} to another repository, or kafka_home to an installed Apache Kafka"
            raise ClusterUnavailable(f"{error} ({remedy})") from error

    def close(self) -> None:
        """Stop all nodes, and remove the temporary directory."""
        self._brokers, self._controller, self._controllers = (), None, None
        self._resources.close()

    def __enter__(self) -> Self:
        return self if self._brokers else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # Topics and leaders

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> None:
        """Create a topic, or raise a KafkaError with the reason. When this returns, all running brokers serve it."""
        running = self._running()
        running[0].create_topic(name, partitions, config)
        for broker in running[1:]:
            broker.await_topic(name)

    def leader(self, topic: str, partition: int) -> Broker:
        """Return the broker that leads a partition, as the controller sees it. Raise ValueError if there is none."""
        known = self._running()[0].metadata.partition(TopicPartition(topic, partition))
        if known is None or known.leader < 0:
            raise ValueError(f"{topic}-{partition} {'does not exist' if known is None else 'has no leader'}")
        return self.brokers[known.leader - FIRST_BROKER]

    def cut(self, one: Broker, other: Broker, *, is_mutual: bool = True) -> None:
        """Separate two nodes until `heal`: neither reaches the other. Clients still reach both.

        Without `is_mutual` only `one` cannot reach `other`. Followers connect to leaders, brokers to the controller.
        """
        first, second = self._client_id(one), self._client_id(other)
        other.cut_off(first)
        if is_mutual:
            one.cut_off(second)

    def _client_id(self, node: Broker) -> str:
        """Return the client id of a node's requests to the others."""
        if node is self._controller:
            return client_id_of(FIRST_CONTROLLER)
        if node not in self.brokers:
            raise ValueError("the node does not belong to this cluster")
        return client_id_of(FIRST_BROKER + self.brokers.index(node))

    def heal(self) -> None:
        """Remove the faults of all brokers and of the controller, and connect them again."""
        for broker in self.brokers if self._controller is None else (*self.brokers, self._controller):
            broker.heal()

    def _running(self) -> list[Broker]:
        running = [broker for broker in self.brokers if broker.is_running]
        if not running:
            raise NotRunning("no broker of the cluster is running")
        return running


def _embedded(node: Node, own: Collection[str]) -> Broker:
    """Return a node of the plan as a part of this process. It chooses its `own` settings itself."""
    return Broker(node.data, config={key: text for key, text in node.settings.items() if key not in own})


def _free_ports(controllers: int) -> int:
    """Return a port for the plan with which the controllers get free ports."""
    while True:
        first = random.choice(_PORTS)
        try:
            for number in range(controllers):
                with socket.socket() as probe:
                    probe.bind((HOST, controller_port(first, number)))
        except OSError:
            continue
        return first


def _await_peers(broker: Broker, count: int) -> None:
    """Wait until a broker knows that all brokers are active."""
    deadline_s = time.monotonic() + _TIMEOUT_S
    while len(broker.metadata.unfenced_brokers()) < count:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"broker {broker.bootstrap} does not see {count} active brokers after {_TIMEOUT_S} s")
        time.sleep(_POLL_S)


def _crash_if_running(broker: Broker) -> None:
    """End a broker at once: nobody reads its files again, and no other broker has to take over its partitions."""
    if broker.is_running:
        broker.crash()


class _Guard:
    """A process that kills processes and removes a directory when this process ends, however it ends."""

    def __init__(self, directory: Path, pids: list[int]) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(directory), *map(str, pids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
