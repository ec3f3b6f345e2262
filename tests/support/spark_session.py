"""One small Spark session per test process, or the reason why there is none.

Spark needs Java 17 or newer, which `tailrace.spark.java` finds. Everything stays on the loopback interface. The session
is local, or that of the cluster which TAILRACE_SPARK_MASTER names (tests/support/spark_cluster.py).
Spark's own Kafka connector is loaded as well if a test needs it and Maven can download its jars. They must be present
when the session is created.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

from tailrace.spark.java import JavaMissing, use_java
from tailrace.spark.worker_python import worker_python
from tests.support.cache import Unavailable
from tests.support.foreign_clients import maven_jars

# The newest available version of each part with which streams run as well: some classes moved in Spark 4.1.
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.1",
)


class SparkUnavailable(Exception):
    """The reason why Spark cannot run here, in one sentence."""


_sessions: list[Any] = []


def spark_session(*, with_connector: bool = False, is_hasty: bool = True, master: str | None = None) -> Any:
    """Return the session of this process. With is_hasty, Java compiles less, which suits short tests."""
    if not _sessions:
        where = master or os.environ.get("TAILRACE_SPARK_MASTER") or "local[2]"
        _sessions.append(_new_session(where, with_connector, is_hasty))
    return _sessions[0]


def _new_session(master: str, with_connector: bool, is_hasty: bool) -> Any:
    try:
        use_java()
    except JavaMissing as error:
        raise SparkUnavailable(str(error)) from None
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailable(f"pyspark is not installed: {error}") from None
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = worker_python()
    # Workers import the tested code from the same path as the tests.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH", "")]))
    jars, why_not = _connector_jars() if with_connector else ([], "no test asked for them")
    scratch = tempfile.mkdtemp(prefix="tailrace-spark-")
    java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" if is_hasty else ""
    session = (
        SparkSession.builder.master(master)
        .config("spark.jars", ",".join(jars))
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
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.executor.extraJavaOptions", java)
        .config("spark.executor.memory", "640m")
        .getOrCreate()
    )
    session.scratch = scratch
    session.has_connector = bool(jars)
    session.why_no_connector = why_not
    return session


def _connector_jars() -> tuple[list[str], str]:
    try:
        return [str(path) for path in maven_jars(*CONNECTOR, alone=True)], ""
    except Unavailable as why:
        return [], str(why)


def stop_session() -> None:
    while _sessions:
        session = _sessions.pop()
        session.stop()
        shutil.rmtree(session.scratch, ignore_errors=True)
