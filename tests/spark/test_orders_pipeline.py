"""The pipeline of the example inside Spark: its results are correct, also if it is stopped and resumed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tailrace
from examples.orders.checker import check
from examples.orders.events import ORDERS, PAYMENTS
from examples.orders.feeder import create_topics, feed
from examples.orders.lake import Lake
from tailrace.client.cluster.cluster_client import ClusterClient

ROOT = Path(__file__).parents[2]


def run_to_the_end(pipeline: Any, name: str) -> None:
    """Run a query. On a busy machine Spark may not wait long enough for its Python; then start it again."""
    for _ in range(3):
        query = pipeline.start(name, availableNow=True)
        try:
            query.awaitTermination(300)
            assert not query.isActive
            return
        except Exception as error:
            if "failed to connect back" not in str(error):
                raise
        finally:
            query.stop()
    raise AssertionError(f"{name} was never started")


@pytest.mark.slow
def test_every_result_of_the_pipeline_is_correct_and_written_once(spark: Any, tmp_path: Path) -> None:
    from examples.orders.pipeline import REVENUE, SETTLED, Pipeline

    with tailrace.Broker(tmp_path / "data") as broker, ClusterClient(broker.bootstrap) as cluster:
        create_topics(cluster, ORDERS, PAYMENTS, SETTLED, REVENUE)
        for part in range(2):
            feed(cluster, seed=7, count=3_000)
            # Many small batches, so that watermarks advance during the query.
            pipeline = Pipeline(spark, broker.bootstrap, tmp_path, max_offsets=2_000)
            for name in (SETTLED, REVENUE):
                run_to_the_end(pipeline, name)
            Lake(spark, broker.bootstrap, tmp_path).complete()
            settled, revenue = check(broker.bootstrap, tmp_path)
            assert settled.is_right, settled
            assert revenue.is_right, revenue
            assert settled.results > 1_000 * (part + 1)
            assert revenue.results >= 5 * (part + 1)


def job(directory: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "examples.orders", "--directory", str(directory), *options]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


@pytest.mark.slow
def test_a_killed_pipeline_resumes_without_duplicates(spark: Any, tmp_path: Path) -> None:
    """The fixture `spark` only skips the test without Java; the job has its own session."""
    first = job(tmp_path, "--forever")
    assert first.stdout is not None
    try:
        for line in first.stdout:
            if "revenue batch 2" in line or "revenue batch 3" in line:
                break
        else:
            raise AssertionError("it ended by itself")
    finally:
        # Driver, JVM and workers are killed together. The broker has its own session, and ends when its parent ends.
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
        wait_for_release(tmp_path / "broker")
    second = job(tmp_path, "--seconds", "5")
    words, _ = second.communicate(timeout=900)
    assert second.returncode == 0, words[-4000:]
    assert "resuming after" in words
    assert "revenue: " in words
    assert words.count("all as expected, none missing, none twice") == 2


def wait_for_release(data: Path) -> None:
    """Wait until the lock of a broker's data directory is free."""
    deadline = time.monotonic() + 60
    with (data / ".lock").open("r+b") as lock:
        while True:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
