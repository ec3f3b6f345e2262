"""Every record is written exactly once while workers, drivers and the broker are killed with -9 repeatedly."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tests.support.filled_topics import numbered, put
from tests.support.kafka_broker import KafkaBroker
from tests.support.sink_driver import commits
from tests.support.sink_run import committed_values
from tests.support.spark_workers import kill_a_worker
from tests.support.tailrace_process import TailraceProcess

PARTITIONS = 3


class Broker:
    """A broker of Tailrace or Apache Kafka with the same methods."""

    def __init__(self, kind: str, directory: Path, request: pytest.FixtureRequest) -> None:
        self._ours = TailraceProcess(directory / "data") if kind == "tailrace" else None
        self._theirs = None if self._ours else KafkaBroker(request.getfixturevalue("kafka"), directory)

    @property
    def process(self) -> Any:
        return self._ours or self._theirs

    def kill_and_start(self) -> None:
        if self._ours is not None:
            self._ours.kill()
        else:
            assert self._theirs is not None
            self._theirs.crash()
        self.process.start()


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    made = Broker(request.param, tmp_path / "broker", request)
    with made.process, ClusterClient(made.process.bootstrap) as cluster:
        for topic in ("in", "out"):
            create_topic(cluster, NewTopic(name=topic, partitions=PARTITIONS, replication_factor=1))
        yield made


class Driver:
    """A driver process and its micro-batches."""

    def __init__(self, bootstrap: str, directory: Path, *settings: str) -> None:
        self.checkpoint = directory / "checkpoint"
        self._log = directory / "driver.log"
        scratch = directory / "scratch"
        scratch.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.support.sink_driver", bootstrap, str(self.checkpoint), *settings]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[2],
                env={**os.environ, "TMPDIR": str(scratch)},
                start_new_session=True,
            )

    def wait_for(self, count: int, timeout_s: float = 300) -> None:
        """Wait until Spark has committed a number of micro-batches, or the driver has ended."""
        deadline = time.monotonic() + timeout_s
        while commits(self.checkpoint) < count and self.process.poll() is None:
            assert time.monotonic() < deadline, f"{commits(self.checkpoint)} micro-batches\n{self.output}"
            time.sleep(0.02)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]


def fill(bootstrap: str, records: int) -> Counter[bytes]:
    now_ms = int(time.time() * 1000)  # retention would delete older records
    for partition in range(PARTITIONS):
        values = numbered(records // PARTITIONS, partition * 1_000_000)
        put(bootstrap, "in", partition, values, per_batch=50, timestamp=now_ms)
    return Counter(committed_values(bootstrap, "in"))


@pytest.mark.slow
def test_every_record_is_written_once_while_processes_are_killed(broker: Broker, tmp_path: Path) -> None:
    dice = random.Random(int(os.environ.get("TAILRACE_SEED", "1")))
    rounds, batches = int(os.environ.get("TAILRACE_KILLS", "4")), int(os.environ.get("TAILRACE_BATCHES", "40"))
    wanted = fill(broker.process.bootstrap, 60 * batches)
    settings = ("per_batch=60", "deaths=0.001")
    ends: Counter[str] = Counter()
    for _ in range(rounds):
        driver = Driver(broker.process.bootstrap, tmp_path, *settings)
        first = commits(driver.checkpoint) + 1
        driver.wait_for(first)  # the start is slow and is not under test; on a busy machine it may fail
        goal = first + dice.randrange(1, 1 + batches // rounds)
        deadline = time.monotonic() + 300
        while commits(driver.checkpoint) < goal and driver.process.poll() is None:
            assert time.monotonic() < deadline, driver.output
            time.sleep(dice.random())  # a random moment of a micro-batch
            if dice.random() < 0.1:
                kill_a_worker(driver.process.pid, dice)
                ends["worker"] += 1
            elif dice.random() < 0.03:
                broker.kill_and_start()
                ends["broker"] += 1
        ends["driver, killed" if driver.process.poll() is None else "driver, failed"] += 1
        driver.kill()
    for _ in range(20):  # a worker that dies in a commit fails the query, which is then restarted
        last = Driver(broker.process.bootstrap, tmp_path, *settings, "stop=yes")
        try:
            if last.process.wait(600) == 0:
                break
        finally:
            last.kill()
    print(f"{commits(last.checkpoint)} micro-batches; ends: {dict(ends)}")
    found = Counter(committed_values(broker.process.bootstrap, "out"))
    assert found - wanted == Counter(), "written twice"
    assert wanted - found == Counter(), "lost"
