"""Spark Declarative Pipelines with the source and the sink: `spark-pipelines` runs the example twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tailrace
from examples.orders.checker import values_of
from examples.orders.events import ORDERS, PAYMENTS
from examples.orders.feeder import create_topics, feed
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.spark.java import use_java
from tailrace.spark.worker_python import worker_python

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_declarative_tables_views_and_topics_follow_the_log(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect is not installed: pip install 'tailrace[pipelines]'")
    pytest.importorskip("yaml", reason="Spark Connect is not installed: pip install 'tailrace[pipelines]'")
    project = shutil.copytree(ROOT / "examples" / "declarative", tmp_path / "project")
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/tailrace-declarative", (tmp_path / "storage").as_uri()))
    with tailrace.Broker(tmp_path / "data") as broker, ClusterClient(broker.bootstrap) as cluster:
        create_topics(cluster, ORDERS, PAYMENTS, "large-orders")
        for _ in range(2):
            feed(cluster, seed=7, count=500)
            run_pipeline(project, broker.bootstrap, tmp_path)
            orders = [json.loads(value) for value in values_of(cluster, ORDERS)]
            large = sorted(order["order_id"] for order in orders if order["amount_cents"] >= 20_000)
            assert large
            written = sorted(json.loads(value)["order_id"] for value in values_of(cluster, "large-orders"))
            assert written == large


def run_pipeline(project: Path, bootstrap: str, directory: Path) -> None:
    import pyspark

    environment = {
        **os.environ,
        "BOOTSTRAP": bootstrap,
        "PYSPARK_PYTHON": worker_python(),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    use_java(environment)
    program = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
    # Without a location the catalog would be lost after the run. With one, the second run finds the tables.
    settings = ("--conf", "spark.sql.catalogImplementation=hive")
    done = subprocess.run(
        [program, *settings, "run", "--spec", project / "spark-pipeline.yml"],
        cwd=directory, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
