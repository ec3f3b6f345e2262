"""ShareWorkers: Java's KafkaShareConsumer as processes, and their output.

    with ShareWorkers(broker.bootstrap, "orders", "workers") as workers:
        one = workers.start("one")
        workers.wait_for(lambda output: "accept v1" in output)
        one.kill()

Each worker prints one line for each record that it acknowledges.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.cache import Unavailable, digest_of_files, make_once
from tests.support.foreign_clients import SOURCES
from tests.support.kafka_install import kafka_installation

PATIENCE_S = 120.0
_SOURCE = SOURCES / "java" / "ShareWorker.java"


def _classes() -> Path:
    installation = kafka_installation()
    compiler = installation.java.compiler
    if compiler is None:
        raise Unavailable("a JDK is needed for Java's share consumer")

    def build(directory: Path) -> None:
        path = os.pathsep.join(map(str, installation.jars))
        command = [str(compiler), "--release", "17", "-nowarn", "-proc:none", "-cp", path, "-d", str(directory)]
        done = subprocess.run([*command, str(_SOURCE)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return make_once(installation.cache / f"share-worker-{digest_of_files([_SOURCE])}", build)


class Worker:
    def __init__(self, name: str, command: list[str], received: list[str]) -> None:
        self.name = name
        self._received = received
        self.output: list[str] = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.errors = ""
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._listen, self._listen_to_errors)]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line.strip())
            self._received.append(line.strip())

    def _listen_to_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line

    def kill(self) -> None:
        self.process.kill()
        self._ended()

    def stop(self) -> None:
        """Ask the process to end, so that it closes its session."""
        assert self.process.stdin is not None
        if self.process.poll() is None:
            self.process.stdin.write("\n")
            self.process.stdin.close()
        self._ended()
        assert self.output[-1:] == ["closed"], f"{self.output[-3:]} {self.errors[-2000:]}"

    def _ended(self) -> None:
        self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)


class ShareWorkers:
    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._arguments = [topic, f"bootstrap.servers={bootstrap}", f"group.id={group}", "reconnect.backoff.max.ms=200"]
        self.workers: list[Worker] = []
        self.received: list[str] = []  # output of all workers, in order of arrival

    def start(self, name: str, *settings: str) -> Worker:
        command = kafka_installation().command(
            "ShareWorker", *self._arguments, f"client.id={name}", *settings, heap="128m", classes=_classes()
        )
        worker = Worker(name, command, self.received)
        self.workers.append(worker)
        return worker

    def output(self) -> list[str]:
        return [line for worker in self.workers for line in list(worker.output)]

    def wait_for(self, condition: Callable[[list[str]], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition(self.output()):
            reported = {one.name: (one.process.poll(), one.output[-20:], one.errors[-1500:]) for one in self.workers}
            assert time.monotonic() < deadline, reported
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
