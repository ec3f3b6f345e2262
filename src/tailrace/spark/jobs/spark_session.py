"""The Spark session of a job that is started from the command line. It logs only errors.

Spark needs Java. The version is checked before Spark starts (`spark/java.py`), because Spark would report it with a
stack trace.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from tailrace.spark.java import JavaMissing
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.sessions import session

_OF_MACHINES = re.compile(
    r"^(?:\w+\.)*(?:OSError|IOError|TimeoutError|\w*Connection\w*Error): |ExecutorLost|exited unexpectedly",
    re.M,
)


@contextmanager
def job_session(name: str, *, master: str = "local[*]", confs: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Yield a session for one job, and stop it afterwards. An active session of this process is used and not stopped.

    Raise JobError with one sentence if there can be no session.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobError("Spark is not installed: pip install 'tailrace[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    spark = _open(name, master, confs or {})
    try:
        yield spark
    finally:
        # A SIGTERM for the whole process group, as from systemd, also ends Java.
        with suppress(Exception):
            spark.stop()


def _open(name: str, master: str, confs: Mapping[str, str]) -> Any:
    with _quiet_java() as log:
        try:
            spark = session(f"tailrace {name}", master=master, config=confs)
            _silence_accumulators(spark)
            return spark
        except JavaMissing as error:
            raise JobError(str(error)) from None
        except Exception as error:
            reason = first_sentence(error) if log is None else _first_error(log) or first_sentence(error)
            raise JobError(f"Spark cannot be started with master {master}: {reason}") from None


def _silence_accumulators(spark: Any) -> None:
    """Print no stack trace from a thread of PySpark if Java ends. The job reports that."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, address: None


@contextmanager
def _quiet_java() -> Iterator[str | None]:
    """Redirect the standard error of Java to a file, because Java and Spark print messages of no use to the user."""
    if os.environ.get("TAILRACE_DEBUG"):
        yield None
        return
    handle, path = tempfile.mkstemp(prefix="tailrace-job-", suffix=".log")
    atexit.register(os.remove, path)
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield path
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _first_error(path: str) -> str | None:
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file]
    return next((line for line in lines if "Exception" in line or line.startswith("Error")), None)


def is_of_machines(text: str) -> bool:
    """Return True if the error of a stage is that of a disk, a network or a worker, not of the program."""
    return bool(_OF_MACHINES.search(text))


def first_sentence(error: BaseException) -> str:
    """Return the message of an error of Spark without stack traces: Python's last line, or Java's first."""
    text = str(error).strip()
    python = re.findall(
        r"^(?:\w+\.)*(\w+(?:Error|Exception|Log|Option|Lost|Unreadable|Batch|Index)): (.+)$", text, re.M
    )
    if python:
        return str(python[-1][1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
