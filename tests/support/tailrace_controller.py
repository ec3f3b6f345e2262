"""TailraceController: a controller of our own as a process, with what brokers need of `KafkaControllers`.

with TailraceController(kafka_installation(), tmp_path / "controller") as controller:
    KafkaMember(controller, tmp_path / "kafka", 2)
    kraft_broker(controller, tmp_path / "ours", 1)
    controller.nodes[0].crash()
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.kafka_broker import free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess


class ControllerProcess(TailraceProcess):
    """One controller, which also knows the Apache Kafka that brokers below it use."""

    def __init__(self, installation: KafkaInstallation, data: Path, *options: str) -> None:
        super().__init__(data, *options, "--log-level", "info")
        self.installation = installation


class TailraceController:
    def __init__(
        self, installation: KafkaInstallation, directory: Path, *, properties: Mapping[str, str] | None = None
    ) -> None:
        port = free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        chosen = {
            "process.roles": "controller",
            "node.id": "3000",
            "listeners": f"CONTROLLER://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "default.replication.factor": "1",
            **(properties or {}),
        }
        options = [part for key, text in chosen.items() for part in ("-o", f"{key}={text}")]
        self._data = directory / "controller"
        self.nodes = [ControllerProcess(installation, self._data, *options)]

    @property
    def cluster_id(self) -> str:
        lines = (self._data / "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

    def __enter__(self) -> Self:
        self.nodes[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.nodes[0].kill()
