"""session and configure: a Spark that finds `format("tailrace")`, whatever environment is activated.

    spark = tailrace.spark.session()             # starts Spark, or returns the session that runs
    spark = tailrace.spark.configure(spark)      # a session that other code has started

Notebook kernels, IDEs and cron start the interpreter of a virtual environment by its path. Spark would then look for
data sources in the `python3` of the PATH, which does not have Tailrace.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tailrace.spark.environment import prepare_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}


def session(
    name: str = "tailrace", *, master: str = "local[*]", config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a Spark session with a usable Java, this interpreter for the workers, and few log lines.

    A session that runs in this process is configured and returned as it is, also if another thread has started it.
    `config` overrides the defaults, `spark.master` included.
    Raise JavaMissing if there is no Java 17 or newer.
    """
    prepare_spark()
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: pip install 'tailrace[spark]'", name=error.name) from None

    running = _running_session()
    if running is not None:
        return configure(running)
    settings = {**_DEFAULTS, "spark.app.name": name, "spark.master": master, **(config or {})}
    if settings["spark.master"].startswith("local"):
        # A local Spark needs no other machine, so it listens on the loopback interface only.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings.setdefault("spark.driver.host", "127.0.0.1")
    builder = SparkSession.builder
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()


def _running_session() -> SparkSession | None:
    """Return the session of this thread, or the one that other threads of the process use."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()  # without settings, so that the session keeps its own
    return active


def configure(spark: SparkSession) -> SparkSession:
    """Register `format("tailrace")` in a session that runs, for the interpreter of this process. Return the session.

    PYSPARK_PYTHON has precedence over this interpreter. It must then have Tailrace installed. With Spark Connect the
    workers run the interpreter that the server has chosen, which needs Tailrace too.
    """
    from tailrace.spark.source.data_source import LogDataSource

    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        # Spark sends this program's name along with every Python function, and it has read PYSPARK_PYTHON before.
        spark.sparkContext.pythonExec = os.environ.get("PYSPARK_PYTHON", sys.executable)
    spark.dataSource.register(LogDataSource)
    return spark
