"""SparkCluster: a standalone master and its workers as processes of their own, on the loopback interface.

    with SparkCluster(tmp_path) as cluster:
        session = spark_session(master=cluster.master)       # executors are other processes than the driver
        cluster.workers[0].kill()                            # like kill -9, also of its executor

A test process has one Spark session. Tests that share the `spark` fixture run here by
`TAILRACE_SPARK_MASTER=spark://… pytest tests/spark/…`, as tests/spark/test_on_a_cluster.py does.
The output of a process is in DIRECTORY/NAME.log, and its tail is part of every error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tailrace.spark.java import JavaMissing, use_java
from tailrace.spark.worker_python import worker_python
from tests.support.kafka_broker import free_port
from tests.support.spark_session import SparkUnavailable

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 20.0
_TAIL: Final = 2_000


class SparkProcess:
    """A master or a worker: one JVM, and the executors of a worker."""

    def __init__(self, name: str, directory: Path, main_class: str, *arguments: str) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        self._command = [str(_spark_home() / "bin" / "spark-class"), main_class, *arguments]
        self._directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=_environment(self._directory),
                start_new_session=True,  # executors are in the process group of their worker, and end with it
            )  # fmt: skip

    @property
    def words(self) -> str:
        return self._log.read_text(errors="replace")

    def check_alive(self) -> None:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.words[-_TAIL:]}")

    def kill(self) -> None:
        """Kill the process and all that it started."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        group = self.process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self.process.wait()
        self.process = None


class SparkCluster:
    def __init__(self, directory: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        on = ("--host", "127.0.0.1", "--webui-port", "0")
        base = "org.apache.spark.deploy"
        self._master = SparkProcess("master", directory, f"{base}.master.Master", *on, "--port", str(self.port))
        self.workers = [
            SparkProcess(
                f"worker-{number}", directory, f"{base}.worker.Worker", *on,
                "--cores", str(cores), "--memory", memory, "--work-dir", str(directory / f"work-{number}"), self.master,
            )
            for number in range(workers)
        ]  # fmt: skip

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start all processes, and wait until every worker is registered. Raise SparkUnavailable without Java."""
        for process in (self._master, *self.workers):
            process.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_up():
            for process in (self._master, *self.workers):
                process.check_alive()
            if time.monotonic() > deadline:
                words = "\n".join(process.words[-_TAIL:] for process in (self._master, *self.workers))
                raise AssertionError(f"no cluster within {START_TIMEOUT_S:g} s:\n{words}")
            time.sleep(0.1)
        return self

    def _is_up(self) -> bool:
        return all("Successfully registered with master" in worker.words for worker in self.workers)

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            process.kill()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _spark_home() -> Path:
    try:
        import pyspark
    except ImportError as error:
        raise SparkUnavailable(f"pyspark is not installed: {error}") from None
    return Path(pyspark.__file__).parent


def _environment(directory: Path) -> dict[str, str]:
    environment = dict(os.environ)
    try:
        use_java(environment)
    except JavaMissing as error:
        raise SparkUnavailable(str(error)) from None
    short = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    return {
        **environment,
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_MASTER_HOST": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": short,
        "PYSPARK_PYTHON": worker_python(),
        "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, environment.get("PYTHONPATH", "")])),
    }
