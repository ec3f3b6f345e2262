"""configure: what it changes in sessions of Spark itself and of Spark Connect."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.spark import configure
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
