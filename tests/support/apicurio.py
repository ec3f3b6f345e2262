"""Apicurio: a schema registry with Confluent's API, as a process. It keeps its schemas in topics of a cluster.

with Apicurio(tmp_path, bootstrap) as registry:
    registry.url
    registry.kill()
    registry.start()
"""

from __future__ import annotations

import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.foreign_clients import apicurio_command
from tests.support.kafka_broker import free_port

PATIENCE_S = 120.0


class Apicurio:
    def __init__(self, directory: Path, bootstrap: str) -> None:
        self._port, self._management_port = free_port(), free_port()
        self._log = directory / "apicurio.log"
        self._settings = {
            "APICURIO_STORAGE_KIND": "kafkasql",
            "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": bootstrap,
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self._port),
            "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
            "QUARKUS_MANAGEMENT_PORT": str(self._management_port),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> Self:
        """Start, and wait until the registry has read its topics and responds."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                apicurio_command().command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._settings,
            )
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._is_ready():
            assert self._process.poll() is None, self._log.read_text()[-4_000:]
            assert time.monotonic() < deadline_s, self._log.read_text()[-4_000:]
            time.sleep(0.2)
        return self

    def _is_ready(self) -> bool:
        """Return True if the registry has read its topics. It responds earlier than that, as an empty registry."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._management_port}/health/ready", timeout=5):
                return True
        except OSError:
            return False

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()
