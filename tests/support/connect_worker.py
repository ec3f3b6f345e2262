"""ConnectWorker: a worker of Kafka Connect as a process, and its REST API.

    with ConnectWorker.standalone(tmp_path, settings, [source_config]) as worker: …
    with ConnectWorker.distributed(tmp_path, "a", settings) as worker:
        worker.put("/connectors/lines/config", {...})
        worker.wait_until_running("lines")

The jars are those of Kafka's own release, with the connectors for files. MirrorMaker 2 is started from them as well.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.foreign_clients import java_program, maven_jars
from tests.support.kafka_broker import free_port
from tests.support.kafka_install import kafka_version

PATIENCE_S = 120.0
_MODULES = ("connect-runtime", "connect-file", "connect-json", "connect-mirror")
_CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


class JavaProcess:
    """A main class of Kafka Connect that runs until its `with` block ends. Its output is part of every error."""

    def __init__(self, directory: Path, name: str, main_class: str, *arguments: str) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        self._main_class, self._arguments = main_class, arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        program = java_program(connect_jars(), self._main_class)
        java, *rest = program.command
        prefix = "-Dorg.slf4j.simpleLogger."
        logging = (f"{prefix}defaultLogLevel=info", f"{prefix}log.org.apache.kafka.common.config=warn")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [java, *logging, *rest, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def log_tail(self) -> str:
        problems = [line for line in self.log.splitlines() if " ERROR " in line or " WARN " in line]
        return "\n".join([*problems[-20:], "…", self.log[-4_000:]])

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"{self.name}: not {what}:\n{self.log_tail()}"
            time.sleep(0.25)

    def stop(self) -> int:
        """Stop cleanly, and return the exit status."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end:\n{self.log_tail()}") from None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop() if kind is None else self.kill()


class ConnectWorker(JavaProcess):
    def __init__(self, directory: Path, name: str, mode: str, properties: Sequence[Path], port: int) -> None:
        main_class = f"org.apache.kafka.connect.cli.Connect{mode}"
        super().__init__(directory, name, main_class, *map(str, properties))
        self.url = f"http://127.0.0.1:{port}"

    @classmethod
    def standalone(
        cls, directory: Path, settings: Mapping[str, str], connectors: Sequence[Mapping[str, str]]
    ) -> ConnectWorker:
        port = free_port()
        own = {"offset.storage.file.filename": str(directory / "connect.offsets"), "offset.flush.interval.ms": "500"}
        files = [write_properties(directory / "worker.properties", {**_common(port), **own, **settings})]
        for connector in connectors:
            files.append(write_properties(directory / f"{connector['name']}.properties", connector))
        return cls(directory, "standalone", "Standalone", files, port)

    @classmethod
    def distributed(cls, directory: Path, name: str, settings: Mapping[str, str]) -> ConnectWorker:
        port = free_port()
        own = {"rest.advertised.host.name": "127.0.0.1", "client.id": f"connect-{name}"}
        path = write_properties(directory / f"worker-{name}.properties", {**_common(port), **own, **settings})
        return cls(directory, name, "Distributed", [path], port)

    def get(self, path: str) -> Any:
        return self._request("GET", path)

    def put(self, path: str, document: Any = None) -> Any:
        return self._request("PUT", path, document)

    def patch(self, path: str, document: Any) -> Any:
        return self._request("PATCH", path, document)

    def delete(self, path: str) -> Any:
        return self._request("DELETE", path)

    def wait_until_ready(self) -> Self:
        """Wait until the worker responds. Before it has read its internal topics it does not."""
        self.wait_until(self._responds, "responding")
        return self

    def wait_until_running(self, connector: str, *, tasks: int = 1) -> list[dict[str, Any]]:
        """Wait until the connector and its tasks run, and return the states of the tasks."""
        found: list[dict[str, Any]] = []

        def is_running() -> bool:
            status = self._try(f"/connectors/{connector}/status")
            if status is None:
                return False
            found[:] = status["tasks"]
            states = [status["connector"]["state"], *(task["state"] for task in found)]
            assert "FAILED" not in states, status
            return len(found) == tasks and set(states) == {"RUNNING"}

        self.wait_until(is_running, f"running {connector}")
        return found

    def wait_for_state(self, connector: str, state: str) -> None:
        def has_state() -> bool:
            status = self._try(f"/connectors/{connector}/status")
            if status is None or status["connector"]["state"] != state:
                return False
            return all(task["state"] == state for task in status["tasks"])

        self.wait_until(has_state, f"in state {state}: {connector}")

    def _responds(self) -> bool:
        return self._try("/connectors") is not None

    def _try(self, path: str) -> Any:
        """Return None while the worker starts, or its group has a rebalance."""
        try:
            return self.get(path)
        except (OSError, AssertionError):
            return None

    def _request(self, method: str, path: str, document: Any = None) -> Any:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(text) if text else None


def mirror_maker(directory: Path, settings: Mapping[str, str]) -> JavaProcess:
    path = write_properties(directory / "mm2.properties", settings)
    return JavaProcess(directory, "mirror-maker", "org.apache.kafka.connect.mirror.MirrorMaker", str(path))


def connect_jars() -> tuple[Path, ...]:
    modules = [f"org.apache.kafka:{module}:{kafka_version()}" for module in _MODULES]
    return maven_jars(*modules, "org.slf4j:slf4j-simple:1.7.36")


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def _common(port: int) -> dict[str, str]:
    return {"listeners": f"http://127.0.0.1:{port}", "plugin.discovery": "service_load", **_CONVERTERS}
