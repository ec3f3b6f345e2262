"""ClusterPlan: the nodes of a cluster on this machine, with their ports, folders and settings.

    DIR/cluster.json                    ids, ports and the kind of controllers, kept for the next start
    DIR/controller-3000/                server.properties, controller.log, data/
    DIR/broker-1/                       server.properties, broker.log, data/

Brokers listen on PORT, PORT + 1, …, controllers on PORT + 100, …. The settings are complete: each node can be started
alone with its server.properties, a broker with `tailrace serve --config`.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

HOST: Final = "127.0.0.1"
DEFAULT_BROKERS: Final = 3
DEFAULT_PORT: Final = 9092
FIRST_BROKER: Final = 1
FIRST_CONTROLLER: Final = 3000
_CONTROLLERS_ABOVE: Final = 100
_LAST_PORT: Final = 65_535
_STATE: Final = "cluster.json"

# Settings that the plan sets for each node.
_OWN: Final = frozenset({
    "process.roles", "node.id", "broker.id", "listeners", "advertised.listeners", "log.dirs", "log.dir",
    "metadata.log.dir", "controller.listener.names", "controller.quorum.bootstrap.servers", "controller.quorum.voters",
    "listener.security.protocol.map", "tailrace.metrics.port",
})  # fmt: skip
# Settings of brokers that controllers use as well.
_CONTROLLER_SETTINGS: Final = frozenset({
    "num.partitions", "default.replication.factor", "min.insync.replicas", "unclean.leader.election.enable",
    "broker.session.timeout.ms", "auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds",
    "leader.imbalance.per.broker.percentage",
})  # fmt: skip
# Controllers store this setting as the default of all brokers at the first start (KIP-966). Later, the properties files
# have no effect on it.
_STORED_BY_CONTROLLERS: Final = "min.insync.replicas"


class Controllers(NamedTuple):
    """The controllers of a cluster: one of Tailrace, or one or more of Apache Kafka."""

    size: int = 1
    is_kafka: bool = False

    @classmethod
    def of(cls, text: str | int) -> Controllers:
        """Parse `tailrace`, `kafka`, or a number of Kafka's controllers. Raise ValueError."""
        if text in ("tailrace", "kafka"):
            return cls(1, text == "kafka")
        if isinstance(text, str) and not text.isdecimal():
            raise ValueError(f"{text!r} is neither tailrace, kafka, nor a number of Apache Kafka's controllers")
        if int(text) < 1:
            raise ValueError(f"{text} controllers: the number must be at least 1")
        return cls(int(text), True)

    def __str__(self) -> str:
        one = "one controller" if self.size == 1 else f"{self.size} controllers"
        return f"{one} of {'Apache Kafka' if self.is_kafka else 'Tailrace'}"


class CannotPlan(Exception):
    """The requested cluster is impossible, or contradicts the one in the folder."""


@dataclass(frozen=True, slots=True)
class Node:
    role: str  # broker or controller
    node_id: int
    port: int
    directory: Path
    directory_id: str = ""  # of a controller: part of its identity in the quorum
    settings: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return f"{self.role} {self.node_id}"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / f"{self.role}.log"

    @property
    def settings_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def is_formatted(self) -> bool:
        return (self.data / "meta.properties").exists()


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    directory: Path
    cluster_id: str
    controllers: tuple[Node, ...]
    brokers: tuple[Node, ...]
    has_kafka: bool = False  # True if the controllers are Apache Kafka's

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.controllers, *self.brokers)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.brokers)

    @property
    def controller_bootstrap(self) -> str:
        return ",".join(node.address for node in self.controllers)

    @property
    def initial_controllers(self) -> str:
        """The value of `kafka-storage format --initial-controllers`."""
        return ",".join(f"{node.node_id}@{node.address}:{node.directory_id}" for node in self.controllers)

    def save(self) -> None:
        document = {
            "clusterId": self.cluster_id,
            "controllerKind": "kafka" if self.has_kafka else "tailrace",
            "controllers": [
                {"id": node.node_id, "port": node.port, "directoryId": node.directory_id} for node in self.controllers
            ],
            "brokers": [{"id": node.node_id, "port": node.port} for node in self.brokers],
        }
        new = self.directory / f"{_STATE}.new"
        new.write_text(json.dumps(document, indent=2) + "\n")
        new.replace(self.directory / _STATE)


def plan_cluster(
    directory: Path,
    *,
    brokers: int | None = None,
    controllers: Controllers | None = None,
    port: int | None = None,
    metrics_port: int | None = None,
    overrides: Mapping[str, str] | None = None,
) -> ClusterPlan:
    """Plan a new cluster, or the one in the folder. Omitted numbers are those of the last start."""
    overrides = overrides or {}
    if own := sorted(_OWN & overrides.keys()):
        raise CannotPlan(f"{own[0]} cannot be set for all brokers: the cluster sets it for each node")
    plan = _saved_plan(directory)
    if plan is None:
        first = DEFAULT_PORT if port is None else port
        chosen = controllers or Controllers()
        cluster = ClusterPlan(
            directory,
            new_id(),
            tuple(
                _node(directory, "controller", FIRST_CONTROLLER + number, controller_port(first, number))
                for number in range(chosen.size)
            ),
            _brokers(directory, first, brokers or DEFAULT_BROKERS),
            chosen.is_kafka,
        )
    else:
        known = Controllers(len(plan.controllers), plan.has_kafka)
        if controllers not in (None, known):
            raise CannotPlan(
                f"the cluster in {directory} has {known}, not {controllers}: choose another --data for a new cluster"
            )
        if _STORED_BY_CONTROLLERS in overrides:
            raise CannotPlan(
                f"the cluster in {directory} has stored {_STORED_BY_CONTROLLERS} at its first start; change it with: "
                f"tailrace configs set --broker default {_STORED_BY_CONTROLLERS}={overrides[_STORED_BY_CONTROLLERS]}"
            )
        first = plan.brokers[0].port if port is None else port
        cluster = replace(plan, brokers=_brokers(directory, first, brokers or len(plan.brokers)))
    _check_ports(cluster)
    return _with_settings(cluster, overrides, metrics_port)


def controller_port(port: int, number: int) -> int:
    """Return the port of a controller in a cluster whose first broker listens on `port`."""
    return port + _CONTROLLERS_ABOVE + number


def _brokers(directory: Path, port: int, count: int) -> tuple[Node, ...]:
    return tuple(_node(directory, "broker", FIRST_BROKER + number, port + number) for number in range(count))


def _node(directory: Path, role: str, node_id: int, port: int, directory_id: str = "") -> Node:
    directory_id = directory_id or (new_id() if role == "controller" else "")
    return Node(role, node_id, port, directory / f"{role}-{node_id}", directory_id)


def _check_ports(plan: ClusterPlan) -> None:
    ports = [node.port for node in plan.nodes]
    if not all(0 < port <= _LAST_PORT for port in ports):
        raise CannotPlan(
            f"--port leaves too few ports: nodes would use {min(ports)} to {max(ports)}, the limit is {_LAST_PORT}"
        )
    for node in plan.brokers:
        for other in plan.controllers:
            if node.port == other.port:
                raise CannotPlan(
                    f"{node.name} and {other.name} would both listen on port {node.port}: choose another --port"
                )


def _saved_plan(directory: Path) -> ClusterPlan | None:
    path = directory / _STATE
    if not path.exists():
        return None
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        return ClusterPlan(
            directory,
            str(document["clusterId"]),
            tuple(
                _node(directory, "controller", one["id"], one["port"], one["directoryId"])
                for one in document["controllers"]
            ),
            tuple(_node(directory, "broker", one["id"], one["port"]) for one in document["brokers"]),
            document.get("controllerKind", "kafka") == "kafka",
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CannotPlan(f"{path} is damaged ({error!r}): choose another --data for a new cluster") from error


def _with_settings(plan: ClusterPlan, overrides: Mapping[str, str], metrics_port: int | None) -> ClusterPlan:
    common = {
        "controller.quorum.bootstrap.servers": plan.controller_bootstrap,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    shared = {**_replication(len(plan.brokers)), **overrides}
    decided = {key: value for key, value in shared.items() if key in _CONTROLLER_SETTINGS}
    controllers = []
    for node in plan.controllers:
        settings = {**common, **decided, **_identity(node), "listeners": f"CONTROLLER://{node.address}"}
        controllers.append(replace(node, settings=settings))
    brokers = []
    for number, node in enumerate(plan.brokers):
        settings = {**common, **shared, **_identity(node), "listeners": f"PLAINTEXT://{node.address}"}
        if metrics_port is not None:
            settings["tailrace.metrics.port"] = str(metrics_port + number)
        brokers.append(replace(node, settings=settings))
    return replace(plan, controllers=tuple(controllers), brokers=tuple(brokers))


def _identity(node: Node) -> dict[str, str]:
    return {"process.roles": node.role, "node.id": str(node.node_id), "log.dirs": str(node.data)}


def _replication(brokers: int) -> dict[str, str]:
    """Return settings for three replicas with two in sync, or fewer if there are fewer brokers."""
    copies, in_sync = str(min(3, brokers)), str(min(2, max(1, brokers - 1)))
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def new_id() -> str:
    """Return a random id in Kafka's encoding. It never starts with a dash, which tools would parse as an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made
