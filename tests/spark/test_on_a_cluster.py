"""The source on a standalone cluster: driver, executors and their Python workers are different processes.

These tests find errors that a single JVM hides: a reader that cannot be pickled, state that only the driver has, a
worker that dies with its tasks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import tailrace
from tests.support.filled_topics import numbered, put
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_session import SparkUnavailable

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    try:
        with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
            yield cluster
    except SparkUnavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_SPARK") == "1":
            pytest.fail(f"no Spark: {why}", pytrace=False)
        pytest.skip(f"no Spark: {why}")


def on(cluster: SparkCluster, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TAILRACE_SPARK_MASTER": cluster.master, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900
    )


def test_source_and_sink_work_on_a_spark_cluster(cluster: SparkCluster) -> None:
    done = on(cluster, "-m", "pytest", "-q", "-p", "no:xdist", "tests/spark/test_source.py")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_query_survives_the_loss_of_a_worker(cluster: SparkCluster, tmp_path: Path) -> None:
    """A worker is killed during a query. The other worker repeats its tasks, and each row is counted once."""
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        for partition in range(2):
            put(broker.bootstrap, "t", partition, numbered(2_000))
        script = tmp_path / "driver.py"
        script.write_text(
            dedent("""
                import sys, time
                from pathlib import Path
                from tests.support.spark_session import spark_session, stop_session

                spark = spark_session()
                ready = Path(sys.argv[2])

                def slowly(row):
                    ready.touch()
                    time.sleep(0.002)
                    return row.offset

                frame = spark.read.format("tailrace").options(
                    **{"kafka.bootstrap.servers": sys.argv[1]}, subscribe="t", maxRecordsPerPartition="500"
                ).load()
                offsets = frame.select("offset").rdd.map(slowly).collect()
                assert sorted(offsets) == sorted(list(range(2000)) * 2), len(offsets)
                stop_session()
            """)
        )
        ready = tmp_path / "ready"
        environment = {**os.environ, "TAILRACE_SPARK_MASTER": cluster.master, "PYTHONPATH": str(ROOT)}
        driver = subprocess.Popen(
            [sys.executable, str(script), broker.bootstrap, str(ready)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            while not ready.exists() and driver.poll() is None:
                time.sleep(0.05)
            cluster.workers[0].kill()
            words, _ = driver.communicate(timeout=600)
            assert driver.returncode == 0, words[-4000:]
        finally:
            driver.kill()
            driver.communicate()
            cluster.workers[0].start()
