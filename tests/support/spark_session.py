"""One Spark session per test process, small and quiet; or the reason why there is none.

Spark needs Java 17 or newer: the one of JAVA_HOME, or `java` on the path. Everything stays on the loopback interface.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any


class SparkUnavailable(Exception):
    """Why Spark cannot be run here, in one sentence."""


@cache
def spark_session() -> Any:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        raise SparkUnavailable("no Java was found: install a JDK or JRE of version 17 or newer, or set JAVA_HOME")
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailable(f"pyspark is not installed: {error}") from None
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Workers import what is tested from where the tests do.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH", "")]))
    scratch = tempfile.mkdtemp(prefix="tailrace-spark-")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tailrace tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "768m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.local.dir", scratch)
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto")
        .getOrCreate()
    )
    session.scratch = scratch
    return session


def stop_session() -> None:
    if spark_session.cache_info().currsize:
        session = spark_session()
        session.stop()
        shutil.rmtree(session.scratch, ignore_errors=True)
        spark_session.cache_clear()
