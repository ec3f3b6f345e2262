"""TailraceController: a controller of our own as a process, with what brokers need of `KafkaControllers`.

with TailraceController(kafka_installation(), tmp_path / "controller") as controller:
    KafkaMember(controller, tmp_path / "kafka", 2)
    kraft_broker(controller, tmp_path / "ours", 1)
    controller.nodes[0].crash()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.kafka_broker import free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess

NODE_ID = 3000


class ControllerProcess(TailraceProcess):
    """One controller, which also knows the Apache Kafka that brokers below it use."""

    node_id = NODE_ID

    def __init__(self, installation: KafkaInstallation, data: Path, port: int, *options: str) -> None:
        super().__init__(data, *options, "--log-level", "info", port=port)
        self.installation = installation
        self.ready_timeout_s = 120  # the first process of a run may have to compile all modules

    def crash(self) -> None:
        self.kill()


class TailraceController:
    def __init__(
        self,
        installation: KafkaInstallation,
        directory: Path,
        *,
        properties: Mapping[str, str] | None = None,
        format_options: tuple[str, ...] = (),
        through: Callable[[int, int], int] | None = None,
    ) -> None:
        """Create the controller. The arguments are those of `KafkaControllers`; of `format_options`, --add-scram is
        known.
        """
        port = free_port()
        reached = port if through is None else through(NODE_ID, port)
        self.bootstrap = f"127.0.0.1:{reached}"
        chosen = {
            "process.roles": "controller",
            "node.id": str(NODE_ID),
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "default.replication.factor": "1",
            **({} if reached == port else {"advertised.listeners": f"CONTROLLER://{self.bootstrap}"}),
            **(properties or {}),
        }
        options = [part for key, text in chosen.items() for part in ("-o", f"{key}={text}")]
        self._data = directory / "controller"
        self.nodes = [
            ControllerProcess(installation, self._data, port, *options, *_in_files(format_options, directory))
        ]

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
        if self.nodes[0].process is not None:
            self.nodes[0].kill()


def _in_files(format_options: tuple[str, ...], directory: Path) -> list[str]:
    """Return the options for `tailrace serve`, which reads credentials from a file."""
    if not format_options:
        return []
    (option, credential) = format_options
    assert option == "--add-scram"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "scram"
    path.write_text(credential + "\n")
    path.chmod(0o600)
    return [option, f"@{path}"]
