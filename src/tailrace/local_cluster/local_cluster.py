"""LocalCluster: the processes of a plan, started and stopped in the right order.

    cluster = LocalCluster(plan, kafka, report)
    cluster.start()           # controllers first; returns when clients can connect to every broker
    cluster.watch_once()      # reports nodes that have ended
    cluster.request_stop()    # from a signal handler: ends a start; a second call makes `stop` kill the nodes
    cluster.stop()            # brokers first, which hand over their leaderships, then the controllers

`report` is called with a sentence for each step. The nodes hold the lock of the folder, so that a cluster whose parent
process was killed is not started twice.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tailrace.broker.config.properties_file import property_line
from tailrace.client.admin import describe_cluster
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError
from tailrace.client.settings import ClientSettings
from tailrace.local_cluster.cluster_plan import HOST, ClusterPlan, Node
from tailrace.local_cluster.kafka_program import LOG4J, SERVER, STORAGE_TOOL, KafkaProgram
from tailrace.local_cluster.process import NodeProcess

_POLL_S: Final = 0.05
_START_TIMEOUT_S: Final = 600.0  # log recovery may take long; a node that ends is reported at once
_REMIND_EVERY_S: Final = 10.0
_STOP_TIMEOUT_S: Final = 60.0
_PIDS: Final = "pids"

Report = Callable[[str], None]


class CannotStart(Exception):
    """The cluster does not start. The message has the reason and the last log lines of the failed node."""


class StopRequested(Exception):
    """A stop was requested during the start."""


class LocalCluster:
    def __init__(
        self, plan: ClusterPlan, kafka: KafkaProgram | None, report: Report, *, log_level: str = "info"
    ) -> None:
        """`kafka` runs the controllers; None if they are Tailrace's."""
        self.plan = plan
        self.processes: list[NodeProcess] = []
        self.stop_requests = 0
        self._kafka = kafka
        self._report = report
        self._log_level = log_level
        self._reported: set[NodeProcess] = set()
        self._formatting: list[NodeProcess] = []
        self._lock: int | None = None

    def request_stop(self) -> None:
        self.stop_requests += 1

    def start(self) -> None:
        """Start the nodes. Raise CannotStart or StopRequested; call `stop` in any case."""
        self.plan.directory.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        self._check_ports()
        for node in self.plan.nodes:
            node.directory.mkdir(exist_ok=True)
            node.settings_file.write_text(_properties_text(node.settings))
        self.plan.save()
        if self.plan.has_kafka:
            self._format([node for node in self.plan.controllers if not node.is_formatted])
        self._launch(self.plan.controllers, self._controller_command)
        if self.plan.has_kafka:
            self._wait_for("to listen", lambda: [one for one in self._of("controller") if not one.is_listening])
        self._launch(self.plan.brokers, self._broker_command)
        self._wait_for("to be unfenced", self._brokers_not_active)

    def watch_once(self) -> bool:
        """Report nodes that have ended since the last call. Return True if a broker is running."""
        for one in self.processes:
            if not one.is_running and one not in self._reported:
                self._reported.add(one)
                self._report(f"{one.node.name} (pid {one.pid}) {one.ending}; its log is {one.node.log}")
                if one.node.role == "broker":
                    self._report(f"  to start it again: tailrace serve --config {one.node.settings_file}")
        return any(one.is_running for one in self._of("broker"))

    def stop(self) -> None:
        """Stop all nodes, and return when they have ended."""
        for one in self._formatting:
            one.kill()
            one.wait()
        self._stop("broker")
        self._stop("controller")
        if self._lock is not None:
            (self.plan.directory / _PIDS).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    # ------------------------------------------------------------------------------------------------------- starting

    def _take_lock(self) -> None:
        lock = os.open(self.plan.directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            pids = self.plan.directory / _PIDS
            owner = f" (pids {pids.read_text().strip()})" if pids.exists() else ""
            raise CannotStart(f"the cluster in {self.plan.directory} is running already{owner}") from None
        self._lock = lock

    def _check_ports(self) -> None:
        for node in self.plan.nodes:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, node.port))
                except OSError as error:
                    raise CannotStart(
                        f"{node.name} cannot listen on {node.address}: {error.strerror} (choose another --port)"
                    ) from error

    def _format(self, nodes: Sequence[Node]) -> None:
        if not nodes:
            return
        self._report(f"formatting {_names(nodes)}")
        options = ("--cluster-id", self.plan.cluster_id, "--initial-controllers", self.plan.initial_controllers)
        assert self._kafka is not None
        for node in nodes:
            command = self._kafka.command(STORAGE_TOOL, "format", "-c", str(node.settings_file), *options)
            self._formatting.append(NodeProcess(node, command))
        self._wait_for("to be formatted", lambda: [one for one in self._formatting if one.is_running])
        for one in self._formatting:
            if one.status:
                raise CannotStart(_failure_text(one, "could not be formatted"))

    def _launch(self, nodes: Iterable[Node], command: Callable[[Node], list[str]]) -> None:
        assert self._lock is not None
        for node in nodes:
            one = NodeProcess(node, command(node), kept_open=[self._lock])
            self.processes.append(one)
            self._report(f"starting {node.name} on {node.address} (pid {one.pid})")
        (self.plan.directory / _PIDS).write_text(" ".join(str(one.pid) for one in self.processes) + "\n")

    def _controller_command(self, node: Node) -> list[str]:
        if not self.plan.has_kafka:
            identity = [] if node.is_formatted else ["--cluster-id", self.plan.cluster_id]
            return [*self._broker_command(node), *identity]
        assert self._kafka is not None
        log4j = node.directory / "log4j2.properties"
        log4j.write_text(LOG4J)
        return self._kafka.command(SERVER, str(node.settings_file), log4j=log4j)

    def _broker_command(self, node: Node) -> list[str]:
        return [
            *(sys.executable, "-m", "tailrace", "serve"),
            *("--config", str(node.settings_file), "--log-level", self._log_level),
        ]

    def _wait_for(self, event: str, missing: Callable[[], list[NodeProcess]]) -> None:
        began = reminded = time.monotonic()
        while waiting := missing():
            if self.stop_requests:
                raise StopRequested
            for one in self.processes:
                if not one.is_running:
                    raise CannotStart(_failure_text(one, one.ending))
            now = time.monotonic()
            if now - began > _START_TIMEOUT_S:
                raise CannotStart(
                    _failure_text(waiting[0], f"timed out: waited {_START_TIMEOUT_S:.0f} s for it {event}")
                )
            if now - reminded > _REMIND_EVERY_S:
                reminded = now
                self._report(f"waiting for {_names(one.node for one in waiting)} {event} ({now - began:.0f} s)")
            time.sleep(_POLL_S)

    def _brokers_not_active(self) -> list[NodeProcess]:
        """Return the brokers that do not listen, or that another broker does not know. Unfenced brokers listen."""
        brokers = self._of("broker")
        if silent := [one for one in brokers if not one.is_listening]:
            return silent
        settings = ClientSettings(connect_timeout_ms=1_000, request_timeout_ms=5_000, total_timeout_ms=5_000)
        known: set[int] = {one.node.node_id for one in brokers}
        for one in brokers:
            try:
                with ClusterClient(one.node.address, settings) as client:
                    known &= describe_cluster(client).brokers.keys()
            except ClientError:
                return [one]
        return [one for one in brokers if one.node.node_id not in known]

    def _of(self, role: str) -> list[NodeProcess]:
        return [one for one in self.processes if one.node.role == role]

    # ------------------------------------------------------------------------------------------------------- stopping

    def _stop(self, role: str) -> None:
        running = [one for one in self._of(role) if one.is_running]
        if not running:
            return
        self._report(f"stopping {_names(one.node for one in running)}")
        for one in running:
            one.request_stop()
            if role == "broker" and not any(other.is_running for other in self._of("controller")):
                # Without a controller no other broker can take over its partitions; a second signal skips the wait.
                time.sleep(_POLL_S)
                one.request_stop()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while any(one.is_running for one in running):
            if self.stop_requests > 1 or time.monotonic() > deadline:
                for one in running:
                    if one.is_running:
                        self._report(f"killing {one.node.name}")
                        one.kill()
                for one in running:
                    one.wait()
            time.sleep(_POLL_S)


def _properties_text(settings: Mapping[str, str]) -> str:
    return "".join(property_line(key, value) for key, value in sorted(settings.items()))


def _names(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes)


def _failure_text(one: NodeProcess, event: str) -> str:
    lines = "\n".join(f"  {line}" for line in one.last_log_lines())
    return f"{one.node.name} {event}; its log is {one.node.log}" + (f"; its last lines:\n{lines}" if lines else "")
