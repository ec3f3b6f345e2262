"""Hundreds of micro-batches while tasks, drivers and the broker are killed with -9, without Spark."""

from __future__ import annotations

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
from tests.support.kafka_broker import KafkaBroker
from tests.support.sink_process import TASKS, done, rows
from tests.support.sink_run import committed_values, open_end
from tests.support.tailrace_process import TailraceProcess

ROOT = Path(__file__).parents[2]
TOPIC = "out"
RUNS_MAX = 1_000


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made: KafkaBroker | TailraceProcess = TailraceProcess(tmp_path / "broker")
    if request.param == "kafka":
        made = KafkaBroker(request.getfixturevalue("kafka"), tmp_path / "broker")
    start(made)
    try:
        with ClusterClient(made.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name=TOPIC, partitions=3, replication_factor=1))
        yield made
    finally:
        made.__exit__(None, None, None)


def start(broker: KafkaBroker | TailraceProcess) -> None:
    for tries_left in range(4, -1, -1):
        try:
            broker.start()
            return
        except AssertionError:  # on a busy machine it may not start in time
            if not tries_left:
                raise


def restart(broker: KafkaBroker | TailraceProcess) -> None:
    if isinstance(broker, KafkaBroker):
        broker.crash()
    else:
        broker.kill()
    start(broker)


@pytest.mark.slow
def test_every_row_is_written_once_while_processes_are_killed(broker: Any, tmp_path: Path) -> None:
    seed = int(os.environ.get("TAILRACE_SEED", "1"))
    batches = int(os.environ.get("TAILRACE_BATCHES", "60"))
    dice, ends = random.Random(seed), Counter[str]()
    checkpoint, log = tmp_path / "checkpoint", tmp_path / "driver.log"
    for run in range(RUNS_MAX):
        command = ["-m", "tests.support.sink_process", broker.bootstrap, TOPIC, "q", str(checkpoint), str(batches)]
        with log.open("ab") as words:
            driver = subprocess.Popen(
                [sys.executable, *command, str(seed * 1000 + run)],
                cwd=ROOT, stdout=words, stderr=words, start_new_session=True,
            )  # fmt: skip
        at_first, began = done(checkpoint), time.monotonic()
        while driver.poll() is None and done(checkpoint) == at_first and time.monotonic() - began < 120:
            time.sleep(0.01)  # a start takes time; more kills would prevent all progress
        if driver.poll() is None and dice.random() < 0.1:
            time.sleep(dice.random())
            restart(broker)
            ends["broker"] += 1
        try:
            driver.wait(dice.expovariate(1.0))
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            ends["driver, killed"] += 1
            continue
        if driver.returncode == 0:
            break
        ends["driver, failed"] += 1
    print(f"{done(checkpoint)} micro-batches; ends: {dict(ends)}; see {log}")
    wanted = Counter(row for batch in range(batches) for task in range(TASKS) for row in rows("q", batch, task))
    found = Counter(committed_values(broker.bootstrap, TOPIC))
    assert done(checkpoint) == batches, log.read_text()[-3000:]
    assert found - wanted == Counter(), "seen twice"
    assert wanted - found == Counter(), "lost"
    assert set(open_end(broker.bootstrap, TOPIC).values()) == {0}
