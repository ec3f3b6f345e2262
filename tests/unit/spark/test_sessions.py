"""configure and session: what they change in running sessions of Spark itself and of Spark Connect."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.spark import configure, sessions
from tailrace.spark.source.data_source import LogDataSource


def session_of(module: str, **parts: Any) -> tuple[Any, list[type]]:
    registered: list[type] = []
    kind = type("SparkSession", (), {"__module__": module, "dataSource": SimpleNamespace(register=registered.append)})
    session = kind()
    for name, part in parts.items():
        setattr(session, name, part)
    return session, registered


def test_a_session_of_spark_connect_gets_the_data_source(monkeypatch: pytest.MonkeyPatch) -> None:
    session, registered = session_of("pyspark.sql.connect.session")  # it has no sparkContext
    assert configure(session) is session
    assert registered == [LogDataSource]


def test_a_session_of_spark_gets_this_interpreter_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    session, registered = session_of("pyspark.sql.session", sparkContext=SimpleNamespace(pythonExec="python3"))
    configure(session)
    assert (session.sparkContext.pythonExec, registered) == (sys.executable, [LogDataSource])


def test_settings_that_a_running_session_lacks_are_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    conf = {"spark.app.name": "notebook", "spark.master": "local[2]", "spark.sql.shuffle.partitions": "8"}
    running, _ = session_of("pyspark.sql.connect.session", conf=SimpleNamespace(get=conf.get))
    monkeypatch.setattr(sessions, "prepare_spark", lambda: None)
    monkeypatch.setattr(sessions, "_running_session", lambda: running)

    assert sessions.session() is running
    assert sessions.session("notebook", config={"spark.sql.shuffle.partitions": "8"}) is running
    assert not caplog.messages

    assert sessions.session(master="local[4]", config={"spark.executor.cores": "1"}) is running
    assert caplog.messages == [
        "a Spark session already runs with spark.master=local[2], so local[4] has no effect: stop that session first",
        "a Spark session already runs with spark.executor.cores=None, so 1 has no effect: stop that session first",
    ]
