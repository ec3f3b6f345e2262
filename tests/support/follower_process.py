"""A follower in a process of its own, which kills itself at a chosen point: `python -m tests.support.follower_process`.

The argument is JSON: form, folder, bootstrap, topics, point, count, latest, spark (a master; without it, tasks run in
this process). The process dies with SIGKILL when the point is reached for the count-th time. The points are:

    write             files are written
    catalog:SECONDS   this time after the start of a commit
    commit            the table is committed, the answer is not there yet
    end               the answer is there
    merge             files are merged, for Iceberg not committed
    time:SECONDS
    none
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltalake.table import TableOptimizer

from tailrace.spark.jobs.place import Place
from tailrace.spark.source.group_commits import GroupCommits
from tailrace.spark.source.options import WireOptions
from tailrace.spark.tables import round_writer
from tailrace.spark.tables.follow import Follower, FollowPolicy
from tailrace.spark.tables.formats import iceberg_maintenance
from tailrace.spark.tables.latest import latest_rounds
from tailrace.spark.tables.latest.latest_rounds import LatestRounds
from tailrace.spark.tables.round_files import RoundFiles
from tailrace.spark.tables.table_export import ExportSettings, TableExport
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.exported_tables import opened
from tests.support.inline_spark import InlineSpark
from tests.support.spark_session import spark_session


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def after(owner: Any, name: str, count: int) -> None:
    """End the process after the given number of calls of a function, before its caller gets the result."""
    real: Callable[..., Any] = getattr(owner, name)
    left = [count]

    def call(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        left[0] -= 1
        if left[0] == 0:
            die()
        return found

    setattr(owner, name, call)


def during(owner: Any, name: str, count: int, seconds: float) -> None:
    """End the process some time after the start of a call. Another process does it, so no lock delays it."""
    real: Callable[..., Any] = getattr(owner, name)
    left = [count]

    def call(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -9 {os.getpid()}"])
        return real(*args, **kwargs)

    setattr(owner, name, call)


def arm(form: str, point: str, count: int, *, is_latest: bool) -> None:
    if point.startswith("catalog:"):
        during(*commit_call(form), count, float(point[8:]))
    elif point == "write":
        after(latest_rounds if is_latest else round_writer, "run_grouped" if is_latest else "run_tasks", count)
    elif point == "merge" and form == "iceberg":
        after(iceberg_maintenance, "run_tasks", count)
    elif point == "end":
        after(RoundFiles, "begin", count + 1)
    elif point == "merge":
        during(TableOptimizer, "compact", count, 0.02)
    elif point == "commit":
        after(*commit_call(form), count)
    elif point.startswith("time:"):
        timer = threading.Timer(float(point[5:]), die)
        timer.daemon = True
        timer.start()


def commit_call(form: str) -> tuple[Any, str]:
    if form == "iceberg":
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog, "commit_table"
    from deltalake import DeltaTable

    return DeltaTable, "create_write_transaction"


def main() -> None:
    asked = json.loads(sys.argv[1])
    is_latest = bool(asked.get("latest"))
    arm(asked["form"], asked["point"], asked["count"], is_latest=is_latest)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    place = Place.parse(asked["bootstrap"])
    files = None if asked.get("files") is None else Place.parse(asked["files"])
    with TopicSource(place, asked["topics"], files=files) as source:
        table = opened(asked["form"], Path(asked["folder"]))
        settings = ExportSettings(rounds=LatestRounds(4)) if is_latest else ExportSettings()
        spark = spark_session(master=asked["spark"]) if asked.get("spark") else InlineSpark()
        export = TableExport(spark, source, table, settings)
        group = None
        if asked.get("group"):
            group = GroupCommits(asked["group"], WireOptions(bootstrap=asked["bootstrap"]))
        policy = FollowPolicy(freshness_s=0.05, merge_every=3)
        print("follows", flush=True)
        found = Follower(export, policy, group=group).run(stopped)
    print(json.dumps({"records": found.records, "commits": found.commits}), flush=True)


if __name__ == "__main__":
    main()
