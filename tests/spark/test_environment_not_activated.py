"""The interpreter of a virtual environment is started by its path; `python3` on the PATH is one without Tailrace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace
from tailrace.java import JavaMissing, find_java
from tests.support.filled_topics import numbered, put

COUNT = """
reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "t")
print("records:", reader.load().count())
spark.stop()
"""
OWN_SESSION = """
import sys
import tailrace.spark

spark = tailrace.spark.session(master="local[1]")
"""
SESSION_OF_OTHER_CODE = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
import tailrace.spark

tailrace.spark.configure(spark)
"""


@pytest.mark.slow
@pytest.mark.parametrize("opening", [OWN_SESSION, SESSION_OF_OTHER_CODE], ids=["session", "configure"])
def test_the_source_is_found_without_activating_the_environment(tmp_path: Path, opening: str) -> None:
    try:
        java = find_java("Spark", os.environ)
    except JavaMissing as why:
        pytest.skip(f"no Spark: {why}")
    (tmp_path / "python3").symlink_to(os.path.realpath(sys.executable))
    environment = {
        "HOME": str(Path.home()),
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "JAVA_HOME": str(java.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    other = subprocess.run([tmp_path / "python3", "-c", "import tailrace"], env=environment, capture_output=True)
    assert other.returncode != 0, "the python3 on the PATH must not have Tailrace"
    with tailrace.Broker() as broker:
        broker.create_topic("t")
        put(broker.bootstrap, "t", 0, numbered(20))
        done = subprocess.run(
            [sys.executable, "-c", opening + COUNT, broker.bootstrap],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert "records: 20" in done.stdout, done.stderr
