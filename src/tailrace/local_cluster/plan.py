"""ClusterPlan: the nodes of a cluster on this machine, with their ports, folders and settings.

    DIR/cluster.json                    what stays the same when the cluster is started again
    DIR/controller-3000/                server.properties, controller.log, data/
    DIR/broker-1/                       server.properties, broker.log, data/

Brokers listen on PORT, PORT + 1, …, controllers on PORT + 100, …. The settings are whole: each node can be started
alone with its server.properties, a broker with `tailrace serve --config`.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

HOST: Final = "127.0.0.1"
DEFAULT_BROKERS: Final = 3
DEFAULT_PORT: Final = 9092
FIRST_BROKER: Final = 1
FIRST_CONTROLLER: Final = 3000
_CONTROLLERS_ABOVE: Final = 100
_LAST_PORT: Final = 65_535
_STATE: Final = "cluster.json"

# What the plan itself says of each node.
_OWN: Final = frozenset({
    "process.roles", "node.id", "broker.id", "listeners", "advertised.listeners", "log.dirs", "log.dir",
    "metadata.log.dir", "controller.listener.names", "controller.quorum.bootstrap.servers", "controller.quorum.voters",
    "listener.security.protocol.map", "tailrace.metrics.port",
})  # fmt: skip
# Settings of brokers by which controllers decide.
_DECIDED_BY: Final = frozenset({
    "num.partitions", "default.replication.factor", "min.insync.replicas", "unclean.leader.election.enable",
    "broker.session.timeout.ms", "auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds",
    "leader.imbalance.per.broker.percentage",
})  # fmt: skip
# What controllers make the default of all brokers when the cluster begins (KIP-966); a file has no say in it later.
_KEPT_BY_THE_CLUSTER: Final = "min.insync.replicas"


class CannotPlan(Exception):
    """A cluster that cannot be, or not in this folder."""


@dataclass(frozen=True, slots=True)
class Node:
    role: str  # broker or controller
    node_id: int
    port: int
    directory: Path
    directory_id: str = ""  # of a controller: the quorum knows its voters by it
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
        """As `kafka-storage format --initial-controllers` takes them."""
        return ",".join(f"{node.node_id}@{node.address}:{node.directory_id}" for node in self.controllers)

    def save(self) -> None:
        told = {
            "clusterId": self.cluster_id,
            "controllers": [
                {"id": node.node_id, "port": node.port, "directoryId": node.directory_id} for node in self.controllers
            ],
            "brokers": [{"id": node.node_id, "port": node.port} for node in self.brokers],
        }
        new = self.directory / f"{_STATE}.new"
        new.write_text(json.dumps(told, indent=2) + "\n")
        new.replace(self.directory / _STATE)


def plan_cluster(
    directory: Path,
    *,
    brokers: int | None = None,
    controllers: int | None = None,
    port: int | None = None,
    metrics_port: int | None = None,
    overrides: Mapping[str, str] | None = None,
) -> ClusterPlan:
    """A new cluster, or the one in the folder: there a number that is left out is as it was."""
    overrides = overrides or {}
    if own := sorted(_OWN & overrides.keys()):
        raise CannotPlan(f"-o {own[0]} is not for all brokers: `cluster up` sets it for each node")
    plan = _kept(directory)
    if plan is None:
        first = DEFAULT_PORT if port is None else port
        cluster = ClusterPlan(
            directory,
            new_id(),
            tuple(
                _node(directory, "controller", FIRST_CONTROLLER + number, first + _CONTROLLERS_ABOVE + number)
                for number in range(controllers or 1)
            ),
            _brokers(directory, first, brokers or DEFAULT_BROKERS),
        )
    else:
        if controllers not in (None, len(plan.controllers)):
            raise CannotPlan(
                f"the cluster in {directory} has {len(plan.controllers)} controllers, not {controllers}: "
                "another --data begins a new one"
            )
        if _KEPT_BY_THE_CLUSTER in overrides:
            raise CannotPlan(
                f"the cluster in {directory} has kept {_KEPT_BY_THE_CLUSTER} since its first start: "
                f"tailrace configs set --broker default {_KEPT_BY_THE_CLUSTER}={overrides[_KEPT_BY_THE_CLUSTER]}"
            )
        first = plan.brokers[0].port if port is None else port
        cluster = replace(plan, brokers=_brokers(directory, first, brokers or len(plan.brokers)))
    _check_ports(cluster)
    return _with_settings(cluster, overrides, metrics_port)


def _brokers(directory: Path, port: int, count: int) -> tuple[Node, ...]:
    return tuple(_node(directory, "broker", FIRST_BROKER + number, port + number) for number in range(count))


def _node(directory: Path, role: str, node_id: int, port: int, directory_id: str = "") -> Node:
    directory_id = directory_id or (new_id() if role == "controller" else "")
    return Node(role, node_id, port, directory / f"{role}-{node_id}", directory_id)


def _check_ports(plan: ClusterPlan) -> None:
    ports = [node.port for node in plan.nodes]
    if not all(0 < port <= _LAST_PORT for port in ports):
        raise CannotPlan(f"--port leaves no room for all nodes: ports would be {min(ports)} to {max(ports)}")
    for node in plan.brokers:
        for other in plan.controllers:
            if node.port == other.port:
                raise CannotPlan(f"{node.name} and {other.name} would both listen on {node.port}: --port picks others")


def _kept(directory: Path) -> ClusterPlan | None:
    path = directory / _STATE
    if not path.exists():
        return None
    try:
        told: dict[str, Any] = json.loads(path.read_text())
        return ClusterPlan(
            directory,
            str(told["clusterId"]),
            tuple(
                _node(directory, "controller", one["id"], one["port"], one["directoryId"])
                for one in told["controllers"]
            ),
            tuple(_node(directory, "broker", one["id"], one["port"]) for one in told["brokers"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CannotPlan(f"{path} is damaged ({error!r}): another --data begins a new cluster") from error


def _with_settings(plan: ClusterPlan, overrides: Mapping[str, str], metrics_port: int | None) -> ClusterPlan:
    common = {
        "controller.quorum.bootstrap.servers": plan.controller_bootstrap,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    shared = {**_replication(len(plan.brokers)), **overrides}
    decided = {key: value for key, value in shared.items() if key in _DECIDED_BY}
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
    """Three copies and two in sync, as far as there are brokers for it."""
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
    """A random id as Kafka writes it; none that a command line would take for an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made
