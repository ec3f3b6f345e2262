"""session and configure: Spark sessions that find `format("tailrace")`, even if no virtual environment is activated.

    spark = tailrace.spark.session()             # starts Spark, or returns the session that runs
    spark = tailrace.spark.configure(spark)      # a session that other code has started

Notebook kernels, IDEs and cron start the interpreter of a virtual environment by its path. Spark would then look for
data sources in the `python3` of the PATH, which does not have Tailrace.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tailrace.spark.environment import prepare_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
_NAME: Final = "tailrace"
_MASTER: Final = "local[*]"
_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}


def session(name: str = _NAME, *, master: str = _MASTER, config: Mapping[str, str] | None = None) -> SparkSession:
    """Return a Spark session with a usable Java, this interpreter for the workers, and few log lines.

    `config` overrides the defaults, `spark.master` included.
    If a session already runs in this process, also one of another thread, it is passed to `configure` and returned.
    `name`, `master` and `config` then have no effect. A warning is logged for each setting that it lacks.
    Raise JavaMissing if there is no Java 17 or newer.
    """
    prepare_spark()
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: pip install 'tailrace[spark]'", name=error.name) from None

    running = _running_session()
    if running is not None:
        asked = {} if name == _NAME else {"spark.app.name": name}
        asked |= {} if master == _MASTER else {"spark.master": master}
        _warn_of_differences(running, asked | dict(config or {}))
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


def _warn_of_differences(running: SparkSession, settings: Mapping[str, str]) -> None:
    for setting, value in settings.items():
        actual = running.conf.get(setting, None)
        if actual != value:
            _log.warning(
                "a Spark session already runs with %s=%s, so %s has no effect: stop that session first",
                setting,
                actual,
                value,
            )


def _running_session() -> SparkSession | None:
    """Return the session of this thread, or the one that other threads of the process use."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()  # without settings, so that the session keeps its own
    return active


def configure(spark: SparkSession) -> SparkSession:
    """Register `format("tailrace")` in a running session, and let its workers use this process's Python. Return the
    session.

    PYSPARK_PYTHON has precedence over this interpreter. It must then have Tailrace installed. With Spark Connect the
    workers run the interpreter that the server has chosen, which needs Tailrace too.
    """
    from tailrace.spark.source.data_source import LogDataSource

    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        # Spark sends the program name `pythonExec` with every Python function. It read PYSPARK_PYTHON when the session
        # started.
        spark.sparkContext.pythonExec = os.environ.get("PYSPARK_PYTHON", sys.executable)
    spark.dataSource.register(LogDataSource)
    return spark
