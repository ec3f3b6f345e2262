"""The sink on a standalone cluster of two workers: an executor dies with its tasks.

Speculative copies of slow tasks (spark.speculation) cannot be tested here: Spark does not run two on one host.
tests/integration/test_spark_sink.py tests that they do not disturb each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import tailrace
from tests.support.sink_run import committed_values, open_end
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_session import SparkUnavailable

ROOT = Path(__file__).parents[2]
ROWS = 2_000
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


def start(cluster: SparkCluster, directory: Path, bootstrap: str, body: str, **conf: str) -> subprocess.Popen[str]:
    """Return the program of a driver that writes ROWS numbers in four tasks; `body` is run for each row."""
    script = directory / "driver.py"
    head = """
        import sys, time
        from pathlib import Path
        from pyspark.sql.functions import udf
        from tests.support.spark_session import spark_session, stop_session

        spark = spark_session()
        ready = Path(sys.argv[2])
    """
    tail = f"""
        rows = spark.range(0, {ROWS}, 1, 4).select(udf(on_its_way, "string")("id").alias("value"))
        options = {{"kafka.bootstrap.servers": sys.argv[1], "topic": "out", "kafka.batch.size": "500"}}
        rows.write.format("tailrace").mode("append").options(**options).save()
        stop_session()
    """
    script.write_text(dedent(head) + dedent(body) + dedent(tail))
    settings = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    environment = {
        **os.environ,
        "TAILRACE_SPARK_MASTER": cluster.master,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell",
    }
    return subprocess.Popen(
        [sys.executable, str(script), bootstrap, str(directory / "ready")],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait(driver: subprocess.Popen[str]) -> None:
    try:
        words, _ = driver.communicate(timeout=600)
        assert driver.returncode == 0, words[-4000:]
    finally:
        driver.kill()
        driver.communicate()


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("out", partitions=3)
        yield broker.bootstrap


def check(bootstrap: str) -> None:
    assert Counter(committed_values(bootstrap, "out")) == Counter(b"%d" % number for number in range(ROWS))
    assert set(open_end(bootstrap, "out").values()) == {0}


def test_rows_are_written_once_if_an_executor_dies(cluster: SparkCluster, tmp_path: Path, bootstrap: str) -> None:
    body = """
        def on_its_way(number):
            if number % 100 == 99:
                ready.touch()
            time.sleep(0.01)
            return str(number)
    """
    # Rows reach the sink in small batches, so that each task has written some when the worker dies.
    conf = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        "spark.sql.execution.python.udf.maxRecordsPerBatch": "20",
    }
    driver = start(cluster, tmp_path, bootstrap, body, **conf)
    try:
        while not (tmp_path / "ready").exists() and driver.poll() is None:
            time.sleep(0.05)
        time.sleep(1)
        cluster.workers[0].kill()
        wait(driver)
    finally:
        driver.kill()
        cluster.workers[0].start()
    check(bootstrap)
