"""The contenders, each a process with its own directory, and their CPU time and memory as the system reports them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

from tailrace.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest, ListOffsetsRequest, MetadataRequest
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import JVM_FLAGS, KafkaInstallation, KafkaUnavailable, kafka_installation
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

KFAKE_SOURCE = Path(__file__).with_name("kfake")
_TICKS = os.sysconf("SC_CLK_TCK")
# The JVM flags of Kafka's own start script; the tests' brokers run without the optimising compiler.
_KAFKA_FLAGS = (
    "-Xms1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip


class Contender(Protocol):
    name: ClassVar[str]
    is_warmed_up: bool
    data: Path | None

    @property
    def port(self) -> int: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class Tailrace:
    name: ClassVar = "Tailrace"

    def __init__(self, directory: Path) -> None:
        self.data: Path | None = directory / "data"
        self.is_warmed_up = True  # only just-in-time compilers need a warm-up
        options = ("-o", "log.segment.delete.delay.ms=1000")
        self._process = TailraceProcess(directory / "data", *options)

    @property
    def port(self) -> int:
        return self._process.port

    @property
    def pid(self) -> int:
        assert self._process.process is not None
        return self._process.process.pid

    def start(self) -> None:
        self._process.start()

    def stop(self) -> None:
        if self._process.process is not None:
            self._process.kill()


class _ProductionInstallation(KafkaInstallation):
    """Kafka with the JVM flags of its own start script."""

    def command(self, main_class: str, *arguments: str, heap: str = "1g", classes: Path | None = None) -> list[str]:
        command = KafkaInstallation.command(self, main_class, *arguments, heap=heap, classes=classes)
        return [
            command[0],
            *_KAFKA_FLAGS,
            *(word for word in command[1:] if word not in JVM_FLAGS and not word.startswith("-XX:SharedArchiveFile")),
        ]


def production_installation() -> KafkaInstallation:
    found = kafka_installation()
    return _ProductionInstallation(**{field.name: getattr(found, field.name) for field in fields(found)})


class Kafka:
    name: ClassVar = "Apache Kafka"

    def __init__(self, directory: Path) -> None:
        self.is_warmed_up = False
        # The values of Kafka's own server.properties; the tests use smaller ones.
        properties = {
            "num.network.threads": "3",
            "num.io.threads": "8",
            "background.threads": "10",
            "log.cleaner.dedupe.buffer.size": "134217728",
            "log.segment.delete.delay.ms": "1000",
            "group.initial.rebalance.delay.ms": "3000",
            "offsets.topic.num.partitions": "50",
        }
        self._broker = KafkaBroker(production_installation(), directory, properties=properties, heap="1g")
        self.data: Path | None = self._broker.data

    @property
    def port(self) -> int:
        return self._broker.port

    @property
    def pid(self) -> int:
        return self._broker.pid

    def start(self) -> None:
        self._broker.start()

    def stop(self) -> None:
        if self._broker.process is not None:
            self._broker.crash()


class Kfake:
    """franz-go's fake cluster: one broker, everything in memory."""

    name: ClassVar = "kfake"

    def __init__(self, directory: Path) -> None:
        self.data: Path | None = None
        self.is_warmed_up = True
        self.port = free_port()
        self._program = directory / "kfake"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def build(self) -> None:
        go = shutil.which("go")
        if go is None:
            raise KfakeUnavailable("there is no Go here to build it with")
        self._program.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [go, "build", "-o", str(self._program), "."], cwd=KFAKE_SOURCE, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise KfakeUnavailable(f"it cannot be built: {done.stderr.strip()[-300:]}")

    def start(self) -> None:
        if not self._program.exists():
            self.build()
        self._process = subprocess.Popen([str(self._program), str(self.port)], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


class KfakeUnavailable(Exception):
    """kfake is not available for the comparison."""


@contextlib.contextmanager
def contenders(*, with_kfake: bool = True) -> Iterator[list[Contender]]:
    """Yield the running contenders that are available here. Print the missing ones."""
    root = Path(tempfile.mkdtemp(prefix="tailrace-bench-", dir=os.environ.get("TAILRACE_BENCH_DIR")))
    running: list[Contender] = []
    try:
        for kind in (Tailrace, Kafka, Kfake):
            if kind is Kfake and not with_kfake:
                continue
            try:
                one: Contender = kind(root / kind.__name__.lower())
                running.append(one)
                one.start()
            except (KafkaUnavailable, KfakeUnavailable) as why:
                print(f"left out: {kind.name}: {why}", flush=True)
                running = [contender for contender in running if contender.name != kind.name]
        yield running
    finally:
        for contender in running:
            contender.stop()
        shutil.rmtree(root, ignore_errors=True)


# CPU time and memory


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process until now, of all its threads."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


def memory_mb(pid: int, what: str = "VmRSS") -> float:
    """Return the resident memory now, or its peak (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no {what} of process {pid}")


def reset_peak(pid: int) -> None:
    """Reset the peak of resident memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


# Topics


def make_topic(contender: Contender, name: str, partitions: int = 1) -> bytes:
    """Create a new topic, and return its id."""
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    deadline = time.monotonic() + 120
    with RawClient(f"127.0.0.1:{contender.port}", timeout_s=120) as client:
        (made,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=120_000), 7).topics
        if made.error_code:
            raise RuntimeError(f"{contender.name} refused topic {name} with error {made.error_code}")
        while True:
            wanted = MetadataRequest.MetadataRequestTopic(name=name)
            (found,) = client.ask(MetadataRequest(topics=[wanted]), 12).topics
            is_led = len(found.partitions) == partitions and all(part.leader_id >= 0 for part in found.partitions)
            if not found.error_code and is_led:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"{contender.name} has no leader for {name} after two minutes")
            time.sleep(0.02)
        # The replicas may learn of the topic later than the metadata shows it.
        while any(part.error_code for part in _ends(client, name, partitions)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{contender.name} does not lead {name} after two minutes")
            time.sleep(0.02)
        return bytes(found.topic_id)


def _ends(client: RawClient, name: str, partitions: int) -> list[Any]:
    asked = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)
    ]
    topic = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=asked)
    return list(client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7).topics[0].partitions)


def delete_topic(contender: Contender, name: str) -> None:
    with RawClient(f"127.0.0.1:{contender.port}") as client:
        client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
