"""KafkaMember: an Apache Kafka broker without a controller role, below controllers in other processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_controllers import KafkaControllers
from tests.support.tailrace_controller import TailraceController


class KafkaMember(KafkaBroker):
    def __init__(
        self,
        controllers: KafkaControllers | TailraceController,
        directory: Path,
        node_id: int,
        properties: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
    ) -> None:
        self._node_id = node_id
        self._controllers = controllers
        super().__init__(controllers.nodes[0].installation, directory, port=port, properties=properties)

    def _default_properties(self) -> dict[str, str]:
        return {
            **super()._default_properties(),
            "process.roles": "broker",
            "node.id": str(self._node_id),
            "controller.quorum.bootstrap.servers": self._controllers.bootstrap,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
        }

    def _format(self, settings: Path) -> None:
        arguments = ("format", f"--cluster-id={self._controllers.cluster_id}", "-c", str(settings))
        self.installation.tool("kafka.tools.StorageTool", *arguments, "--ignore-formatted", "--no-initial-controllers")
