"""LocalCluster: the processes of a plan, started and stopped in the right order.

    cluster = LocalCluster(plan, kafka, tell)
    cluster.start()         # controllers first; returns when clients can connect to every broker
    cluster.watch_once()    # tells of nodes that have ended
    cluster.ask_to_stop()   # from a signal handler: a start gives up; asked twice, a stop does not wait
    cluster.stop()          # brokers first, which hand over what they lead, then the controllers

`tell` is called with each step, in words. One process at a time has a folder: its nodes hold the folder's lock, so that
a cluster whose starter was killed is not started twice.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tailrace.client.admin import describe_cluster
from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.errors import ClientError
from tailrace.client.settings import ClientSettings
from tailrace.local_cluster.kafka_program import LOG4J, SERVER, STORAGE_TOOL, KafkaProgram
from tailrace.local_cluster.plan import HOST, ClusterPlan, Node
from tailrace.local_cluster.process import NodeProcess

_POLL_S: Final = 0.05
_START_TIMEOUT_S: Final = 600.0  # whoever recovers much takes long; whoever ends is told of at once
_REMIND_EVERY_S: Final = 10.0
_STOP_TIMEOUT_S: Final = 60.0
_PIDS: Final = "pids"

Tell = Callable[[str], None]


class CannotStart(Exception):
    """The cluster does not start; says why, with the last words of the node that is at fault."""


class StopAsked(Exception):
    """Somebody wants it to stop before it has started."""


class LocalCluster:
    def __init__(self, plan: ClusterPlan, kafka: KafkaProgram, tell: Tell, *, log_level: str = "info") -> None:
        self.plan = plan
        self.processes: list[NodeProcess] = []
        self.times_asked_to_stop = 0
        self._kafka = kafka
        self._tell = tell
        self._log_level = log_level
        self._told: set[NodeProcess] = set()
        self._formatting: list[NodeProcess] = []
        self._lock: int | None = None

    def ask_to_stop(self) -> None:
        self.times_asked_to_stop += 1

    def start(self) -> None:
        """CannotStart, or StopAsked; `stop` has to be called whatever comes."""
        self.plan.directory.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        self._check_ports()
        for node in self.plan.nodes:
            node.directory.mkdir(exist_ok=True)
            node.settings_file.write_text(_properties_text(node.settings))
        self.plan.save()
        self._format([node for node in self.plan.controllers if not node.is_formatted])
        self._launch(self.plan.controllers, self._controller_command)
        self._wait_for("to listen", lambda: [one for one in self._of("controller") if not one.is_listening])
        self._launch(self.plan.brokers, self._broker_command)
        self._wait_for("to be let in", self._brokers_not_in)

    def watch_once(self) -> bool:
        """Tell of nodes that have ended since the last time; whether there is a broker left."""
        for one in self.processes:
            if not one.is_running and one not in self._told:
                self._told.add(one)
                self._tell(f"{one.node.name} (pid {one.pid}) {one.ending}; its log is {one.node.log}")
                if one.node.role == "broker":
                    self._tell(f"  to start it again: tailrace serve --config {one.node.settings_file}")
        return any(one.is_running for one in self._of("broker"))

    def stop(self) -> None:
        """Returns when no node runs any more."""
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
            who = f" (pids {pids.read_text().strip()})" if pids.exists() else ""
            raise CannotStart(f"the cluster in {self.plan.directory} is running already{who}") from None
        self._lock = lock

    def _check_ports(self) -> None:
        for node in self.plan.nodes:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, node.port))
                except OSError as error:
                    raise CannotStart(
                        f"{node.name} cannot listen on {node.address}: {error.strerror} (--port picks other ports)"
                    ) from error

    def _format(self, nodes: Sequence[Node]) -> None:
        if not nodes:
            return
        self._tell(f"formatting {_names(nodes)}")
        options = ("--cluster-id", self.plan.cluster_id, "--initial-controllers", self.plan.initial_controllers)
        for node in nodes:
            command = self._kafka.command(STORAGE_TOOL, "format", "-c", str(node.settings_file), *options)
            self._formatting.append(NodeProcess(node, command))
        self._wait_for("to be formatted", lambda: [one for one in self._formatting if one.is_running])
        for one in self._formatting:
            if one.status:
                raise CannotStart(_fault(one, "could not be formatted"))

    def _launch(self, nodes: Iterable[Node], command: Callable[[Node], list[str]]) -> None:
        assert self._lock is not None
        for node in nodes:
            one = NodeProcess(node, command(node), kept_open=[self._lock])
            self.processes.append(one)
            self._tell(f"starting {node.name} on {node.address} (pid {one.pid})")
        (self.plan.directory / _PIDS).write_text(" ".join(str(one.pid) for one in self.processes) + "\n")

    def _controller_command(self, node: Node) -> list[str]:
        log4j = node.directory / "log4j2.properties"
        log4j.write_text(LOG4J)
        return self._kafka.command(SERVER, str(node.settings_file), log4j=log4j)

    def _broker_command(self, node: Node) -> list[str]:
        return [
            *(sys.executable, "-m", "tailrace", "serve"),
            *("--config", str(node.settings_file), "--log-level", self._log_level),
        ]

    def _wait_for(self, what: str, missing: Callable[[], list[NodeProcess]]) -> None:
        began = reminded = time.monotonic()
        while waiting := missing():
            if self.times_asked_to_stop:
                raise StopAsked
            for one in self.processes:
                if not one.is_running:
                    raise CannotStart(_fault(one, one.ending))
            now = time.monotonic()
            if now - began > _START_TIMEOUT_S:
                raise CannotStart(_fault(waiting[0], f"was waited for {what} for {_START_TIMEOUT_S:.0f} s"))
            if now - reminded > _REMIND_EVERY_S:
                reminded = now
                self._tell(f"waiting for {_names(one.node for one in waiting)} {what} ({now - began:.0f} s)")
            time.sleep(_POLL_S)

    def _brokers_not_in(self) -> list[NodeProcess]:
        """Those that do not listen, or that one that does has not heard of: each is let in before it listens."""
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
        self._tell(f"stopping {_names(one.node for one in running)}")
        for one in running:
            one.ask_to_stop()
            if role == "broker" and not any(other.is_running for other in self._of("controller")):
                # Nobody can take over what it leads; asked twice it does not wait for that.
                time.sleep(_POLL_S)
                one.ask_to_stop()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while any(one.is_running for one in running):
            if self.times_asked_to_stop > 1 or time.monotonic() > deadline:
                for one in running:
                    if one.is_running:
                        self._tell(f"killing {one.node.name}")
                        one.kill()
                for one in running:
                    one.wait()
            time.sleep(_POLL_S)


def _properties_text(settings: Mapping[str, str]) -> str:
    escaped = {key: value.replace("\\", "\\\\") for key, value in settings.items()}
    return "".join(f"{key}={value}\n" for key, value in sorted(escaped.items()))


def _names(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes)


def _fault(one: NodeProcess, what: str) -> str:
    words = "\n".join(f"  {line}" for line in one.last_words())
    return f"{one.node.name} {what}; its log is {one.node.log}" + (f" and ends so:\n{words}" if words else "")
