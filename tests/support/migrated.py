"""The nodes after `tailrace migrate`: Apache Kafka controllers and a Tailrace broker, started from their properties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailrace.broker.config.properties_file import parse_properties
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess


class MigratedController(KafkaBroker):
    """A controller on the directory and settings that a migration has written; it is never formatted."""

    def __init__(self, installation: KafkaInstallation, path: Path, extra: Mapping[str, str] | None = None) -> None:
        self._reported = parse_properties(path.read_text())
        port = int(self._reported["listeners"].rpartition(":")[2])
        super().__init__(installation, path.parent, port=port, properties=extra, heap="256m")

    def _default_properties(self) -> dict[str, str]:
        return dict(self._reported)

    def _format(self, settings: Path) -> None:
        raise AssertionError(f"{self.data} is not the directory of a node")


def migrated_broker(target: Path, data: Path, port: int, *options: str) -> TailraceProcess:
    """Return the broker, not started yet."""
    broker = TailraceProcess(
        data, "--config", str(target / "broker.properties"), "--log-level", "info", *options, port=port
    )
    broker.ready_timeout_s = 120
    return broker
