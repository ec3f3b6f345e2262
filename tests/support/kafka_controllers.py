"""KafkaControllers: a quorum of Apache Kafka controllers, which Tailrace brokers can join.

    with KafkaControllers(kafka_installation(), tmp_path, count=3) as controllers:
        controllers.bootstrap                 # controller.quorum.bootstrap.servers
        controllers.nodes[0].crash()          # like kill -9
        controllers.nodes[0].start()

Each controller is a process on loopback, and ends with the `with` block.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.storage.storage_format import format_directory
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import KafkaInstallation


def _new_id() -> str:
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made


class KafkaController(KafkaBroker):
    """One controller. `format_options` name the quorum that it begins with."""

    def __init__(
        self,
        installation: KafkaInstallation,
        directory: Path,
        node_id: int,
        port: int,
        bootstrap: str,
        cluster_id: str,
        format_options: tuple[str, ...],
        properties: Mapping[str, str] | None = None,
        *,
        is_formatted_here: bool = False,
    ) -> None:
        self.node_id = node_id
        self._is_formatted_here = is_formatted_here
        self._bootstrap_servers = bootstrap
        self._cluster_id = cluster_id
        self._format_options = format_options
        super().__init__(installation, directory, port=port, properties=properties, heap="256m")

    def _default_properties(self) -> dict[str, str]:
        return {
            "process.roles": "controller",
            "node.id": str(self.node_id),
            "controller.quorum.bootstrap.servers": self._bootstrap_servers,
            "listeners": f"CONTROLLER://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "num.network.threads": "1",
            "num.io.threads": "2",
            "background.threads": "2",
            "default.replication.factor": "1",
        }

    def _format(self, settings: Path) -> None:
        if self._is_formatted_here:
            reached = int(self.properties["advertised.listeners"].rpartition(":")[2])
            endpoint = Endpoint("CONTROLLER", "127.0.0.1", reached)
            identity = DirectoryIdentity(self._cluster_id, self.node_id, _new_id())
            path = str(self.data)
            now_ms = int(time.time() * 1000)
            format_directory(DiskFiles(), path, identity, controller_endpoints=(endpoint,), now_ms=now_ms)
            return
        arguments = ("format", f"--cluster-id={self._cluster_id}", "-c", str(settings), "--ignore-formatted")
        self.installation.tool("kafka.tools.StorageTool", *arguments, *self._format_options)


class KafkaControllers:
    def __init__(
        self,
        installation: KafkaInstallation,
        directory: Path,
        *,
        count: int = 1,
        properties: Mapping[str, str] | None = None,
        format_options: tuple[str, ...] = (),
        is_formatted_here: bool = False,
        through: Callable[[int, int], int] | None = None,
    ) -> None:
        """Create the controllers.

        is_formatted_here: format with our own code, which saves the start of a JVM; for one controller. through: maps a
        controller's id and port to the port under which others reach it; by default its own port.
        """
        self.cluster_id = _new_id()
        ids = [3000 + number for number in range(count)]
        ports = [free_port() for _ in ids]
        reached = [port if through is None else through(one, port) for one, port in zip(ids, ports, strict=True)]
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in reached)
        voters = ",".join(f"{one}@127.0.0.1:{port}:{_new_id()}" for one, port in zip(ids, reached, strict=True))
        quorum = ("--standalone",) if count == 1 else ("--initial-controllers", voters)
        self.nodes = [
            KafkaController(
                installation,
                directory / f"controller-{one}",
                one,
                port,
                self.bootstrap,
                self.cluster_id,
                (*quorum, *format_options),
                {"advertised.listeners": f"CONTROLLER://127.0.0.1:{outside}", **(properties or {})},
                is_formatted_here=is_formatted_here,
            )
            for one, port, outside in zip(ids, ports, reached, strict=True)
        ]

    def node(self, node_id: int) -> KafkaController:
        return next(one for one in self.nodes if one.node_id == node_id)

    def __enter__(self) -> KafkaControllers:
        try:
            for node in self.nodes:
                node.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node._kill()
