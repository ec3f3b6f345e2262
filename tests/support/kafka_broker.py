"""KafkaBroker: an Apache Kafka, one node that is broker and controller, on its own directory.

    with KafkaBroker(kafka_installation(), tmp_path) as broker:      # formats and starts
        broker.produce("topic", 0, batch)
        broker.crash()                                               # like kill -9
        broker.start()
        print(broker.dump(broker.data / "topic-0" / "00000000000000000000.log"))

Data is in DIRECTORY/data (or where the property `log.dirs` points). The broker's output is in DIRECTORY/kafka.log, and
its tail is part of every error. Ports are on the loopback interface only. The end of the `with` block, or of the
interpreter, kills the broker.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.support.kafka_install import KafkaInstallation

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
_NOT_LEADER = 6

# The controller refuses the restart of a killed broker until the old session has expired: nine seconds by default.
AFTER_A_CRASH = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}


class KafkaBroker:
    def __init__(
        self,
        installation: KafkaInstallation,
        directory: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        heap: str = "512m",
        after_crash: bool = False,
        wrapper: Sequence[str] = (),
        classes: Path | None = None,
    ) -> None:
        """Create the broker.

        after_crash: the directory is that of a broker that was killed elsewhere. wrapper: a command that runs the
        broker. classes: a directory with more Java classes, for plugins.
        """
        self.installation = installation
        self.directory = directory
        self.port = free_port() if port is None else port
        self.controller_port = free_port()
        self.heap = heap
        self.properties = {**self._default_properties(), **(properties or {})}
        self.process: subprocess.Popen[bytes] | None = None
        self._crashed = after_crash
        self._wrapper = wrapper
        self._classes = classes

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log_dirs(self) -> list[Path]:
        return [Path(name) for name in self.properties["log.dirs"].split(",")]

    @property
    def data(self) -> Path:
        """Return the (first) log directory."""
        return self.log_dirs[0]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, *, jvm_flags: tuple[str, ...] = ()) -> None:
        """Format unformatted directories, start, and wait until the broker answers a request."""
        self.launch(jvm_flags=jvm_flags)
        try:
            self._wait_until_it_answers()
        except BaseException:
            self._kill()
            raise

    def launch(self, *, jvm_flags: tuple[str, ...] = ()) -> None:
        """Format and start, without waiting until the broker is ready."""
        assert self.process is None, "already running"
        if not jvm_flags:
            prepare_archive(self.installation)
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "server.properties"
        properties = {**(AFTER_A_CRASH if self._crashed else {}), **self.properties}
        settings.write_text("".join(f"{key}={value}\n" for key, value in sorted(properties.items())))
        if not all((log_dir / "meta.properties").exists() for log_dir in self.log_dirs):
            self._format(settings)
        command = self.installation.command("kafka.Kafka", str(settings), heap=self.heap, classes=self._classes)
        command[1:1] = jvm_flags
        command[:0] = self._wrapper
        with (self.directory / "kafka.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        atexit.register(self._kill)

    def stop(self) -> None:
        """Stop cleanly: logs are flushed, checkpoints and the clean-shutdown marker are written."""
        self._end(signal.SIGTERM)
        self._crashed = False

    def crash(self) -> None:
        """Stop uncleanly, as if the process were killed. Written bytes stay in the page cache."""
        self._end(signal.SIGKILL)
        self._crashed = True

    def restart(self) -> None:
        self.stop()
        self.start()

    def log_tail(self, lines: int = 30) -> str:
        path = self.directory / "kafka.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def tool(self, main_class: str, *arguments: str, stdin: str = "", check: bool = True) -> str:
        return self.installation.tool(main_class, *arguments, stdin=stdin, check=check)

    def dump(self, *files: Path, options: tuple[str, ...] = ("--print-data-log", "--deep-iteration")) -> str:
        return self.installation.dump(*files, options=options)

    def request(self, api_key: int, version: int, body: bytes) -> bytes:
        """Send one request of a non-flexible version, and return the body of its response."""
        header = struct.pack(">hhih", api_key, version, 1, 8) + b"tailrace"
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            (size,) = struct.unpack(">i", _receive(connection, 4))
            answer = _receive(connection, size)
        assert answer[:4] == struct.pack(">i", 1)
        return answer[4:]

    def produce(self, topic: str, partition: int, batch: bytes, *, transactional_id: str | None = None) -> int:
        """Produce the bytes unchanged with acks=all, and return their base offset."""
        name = topic.encode()
        transaction = struct.pack(">h", -1)
        if transactional_id is not None:
            transaction = struct.pack(">h", len(transactional_id)) + transactional_id.encode()
        topics = struct.pack(">ih", 1, len(name)) + name + struct.pack(">iii", 1, partition, len(batch)) + batch
        deadline = time.monotonic() + 30
        while True:
            answer = self.request(0, 3, transaction + struct.pack(">hi", -1, 30_000) + topics)
            _, error, base_offset, _ = struct.unpack_from(">ihqq", answer, 4 + 2 + len(name) + 4)
            if error == _NOT_LEADER and time.monotonic() < deadline:
                time.sleep(0.05)  # the broker has not yet applied the metadata that makes it the leader
                continue
            if error:
                raise AssertionError(f"produce to {topic}-{partition} was refused with error {error}")
            return int(base_offset)

    def __enter__(self) -> KafkaBroker:
        if self.process is None:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def _default_properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "num.network.threads": "1",
            "num.io.threads": "2",
            "num.replica.fetchers": "1",
            "background.threads": "2",
            "log.cleaner.dedupe.buffer.size": "2097152",
        }

    def _format(self, settings: Path) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ("format", f"--cluster-id={cluster_id}", "-c", str(settings), "--standalone", "--ignore-formatted")
        self.installation.tool("kafka.tools.StorageTool", *arguments)

    def _wait_until_it_answers(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the broker ended with {self.process.returncode}:\n{self.log_tail()}")
            with contextlib.suppress(OSError):
                self.request(18, 0, b"")  # ApiVersions
                return
            time.sleep(0.05)
        raise AssertionError(f"no answer on port {self.port} after {START_TIMEOUT_S:g} s:\n{self.log_tail()}")

    def _end(self, how: signal.Signals) -> None:
        assert self.process is not None, "not running"
        if self.process.poll() is not None:
            raise AssertionError(f"the broker had already ended with {self.process.returncode}:\n{self.log_tail()}")
        self.process.send_signal(how)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._kill()
            raise AssertionError(f"the broker did not end within {STOP_TIMEOUT_S:g} s:\n{self.log_tail()}") from None
        self._forget()

    def _kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._forget()

    def _forget(self) -> None:
        self.process = None
        atexit.unregister(self._kill)


def prepare_archive(installation: KafkaInstallation) -> None:
    """Make the class-data archive, once per cache, from the classes that a broker loads at its start and stop."""

    def run(flag: str) -> None:
        with tempfile.TemporaryDirectory(prefix="tailrace-kafka-") as scratch:
            broker = KafkaBroker(installation, Path(scratch))
            broker.start(jvm_flags=(flag,))
            broker.stop()

    installation.make_archive(run)


_given_ports: set[int] = set()


def free_port() -> int:
    """Return a free port below the range of outgoing connections. No port is returned twice.

    Each parallel test process has its own range of ports, so that two processes do not take the same port.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        port = random.randrange(20_000 + worker, 32_000, workers)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given_ports:
                _given_ports.add(port)
                return port


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the broker closed the connection")
        parts += part
    return bytes(parts)
