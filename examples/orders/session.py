"""The Spark session of the example: local, small, on the loopback interface only, its log in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tailrace.spark.java import use_java
from tailrace.spark.worker_python import worker_python


def local_session(scratch: Path, *, cores: int = 2, **settings: str) -> Any:
    """Return a session with temporary files in scratch. Raise JavaMissing without Java."""
    use_java()
    from pyspark.sql import SparkSession

    root = Path(__file__).parents[2]
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = worker_python()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    scratch.mkdir(parents=True, exist_ok=True)
    configuration = Path(__file__).with_name("log4j2.properties").as_uri()
    logging = f"-Dlog4j2.configurationFile={configuration} -Dexample.log={scratch / 'spark.log'}"
    defaults = {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "orders",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{logging} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.local.dir": str(scratch / "spark"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder
    for name, value in {**defaults, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
