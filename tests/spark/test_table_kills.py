"""Workers, drivers, brokers and catalog writes are killed with -9 under a follower on Spark; the table has all records.

TAILRACE_FOLLOWER_KILLS is the number of kills, TAILRACE_FOLLOWER_SEED the seed. `tests/integration/tables` has the same
without Spark, for drivers only.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.batches import FetchOptions, fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import latest_offsets
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import TopicPartition
from tailrace.records.record import iter_records
from tailrace.spark.java import JavaMissing, use_java
from tests.support.exported_tables import FORMATS, data_files, named_files, rows
from tests.support.filled_topics import put
from tests.support.spark_workers import kill_a_worker
from tests.support.tailrace_process import TailraceProcess

KILLS = int(os.environ.get("TAILRACE_FOLLOWER_KILLS", "12"))
SEED = int(os.environ.get("TAILRACE_FOLLOWER_SEED", "1"))
PARTITIONS = 3
START_S = 1800.0  # Spark's start on a very busy machine
# How a driver dies: after its files are written, during a catalog write, after it, after its answer, during a merge.
POINTS = ("write", "catalog", "commit", "end", "merge", "time")


class Writer(threading.Thread):
    """Writes until it is stopped. A batch whose answer was lost may be in the topic twice."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._address = bootstrap
        self.stopped = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stopped.wait(0.03):
            values = [(b"key %d" % n, None if n % 11 == 0 else b"value %d" % n) for n in range(number, number + 20)]
            with contextlib.suppress(Exception):  # the broker is down
                put(self._address, "t", number // 20 % PARTITIONS, values, timestamp=int(time.time() * 1000))
                number += 20


class FollowerProcess:
    def __init__(self, form: str, folder: Path, bootstrap: str, point: str, count: int, spark: str | None) -> None:
        asked = {
            "form": form, "folder": str(folder), "bootstrap": bootstrap, "topics": ["t"], "point": point,
            "count": count, "spark": spark,
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "follower.log"
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.follower_process", json.dumps(asked)],
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(scratch)},
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while b"follows" not in self._log.read_bytes() and self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def end(self, how: signal.Signals) -> int:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        status = self.process.wait(120)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # Java and workers of a driver that was killed
        return status


class Kills:
    """Kills what a follower needs, at random moments, and counts it."""

    def __init__(self, broker: TailraceProcess, dice: random.Random) -> None:
        self._broker = broker
        self._dice = dice
        self.counts: Counter[str] = Counter()

    @property
    def number(self) -> int:
        return sum(count for what, count in self.counts.items() if not what.startswith("ended"))

    def run_life(self, form: str, folder: Path) -> None:
        """Run a follower until it dies at its point, or is killed otherwise. Kill workers and brokers meanwhile."""
        point, count = POINTS[self.counts.total() % len(POINTS)], self._dice.randint(4, 16)
        if point in ("time", "catalog"):
            point += f":{self._dice.uniform(2, 12) if point == 'time' else self._dice.uniform(0, 0.03):.3f}"
        if point == "merge":
            count = self._dice.randint(1, 3)
        follower = FollowerProcess(form, folder, self._broker.bootstrap, point, count, "local[2,4]")
        deadline = time.monotonic() + 90
        while follower.process.poll() is None and time.monotonic() < deadline:
            time.sleep(self._dice.uniform(0, 1))
            if self._dice.random() < 0.5:
                self.counts["worker"] += kill_a_worker(follower.process.pid, self._dice)
            elif self._dice.random() < 0.2:
                self._broker.kill()
                self.counts["broker"] += 1
                time.sleep(self._dice.uniform(0, 1))
                self._broker.start()
        has_ended = follower.process.poll() is not None
        status = follower.end(signal.SIGKILL)
        if has_ended and status != -signal.SIGKILL:
            self.counts[f"ended with status {status}"] += 1
            assert status == 1, follower.text  # the process of the tests shows JobErrors with a trace
            assert "JobError" in follower.text, follower.text
        else:
            self.counts[f"driver, {point.partition(':')[0] if has_ended else 'time'}"] += 1


def records_of(bootstrap: str) -> Iterator[tuple[Any, ...]]:
    """Yield the records of the topic, as a client reads them."""
    with ClusterClient(bootstrap) as cluster:
        partitions = [TopicPartition("t", number) for number in range(PARTITIONS)]
        ends = latest_offsets(cluster, partitions, IsolationLevel.READ_COMMITTED)
        for partition, end in ends.items():
            for batch in fetch_range(cluster, partition, 0, end, FetchOptions()):
                for record in iter_records(batch):
                    yield partition.partition, record.offset, bytes_of(record.key), bytes_of(record.value)


def bytes_of(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def table_rows(form: str, folder: Path) -> list[tuple[Any, ...]]:
    return [(row["partition"], row["offset"], row["key"], row["value"]) for row in rows(form, folder)]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_table_equals_its_topic_after_kills_of_all_kinds(form: str, tmp_path: Path) -> None:
    try:
        use_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    out, process = tmp_path / "out", TailraceProcess(tmp_path / "data")
    process.ready_timeout_s = START_S
    with process as broker:
        with ClusterClient(broker.bootstrap) as cluster:
            create_topic(cluster, NewTopic(name="t", partitions=PARTITIONS, replication_factor=1))
        writer = Writer(broker.bootstrap)
        writer.start()
        kills = Kills(broker, random.Random(SEED))
        while kills.number < KILLS:
            kills.run_life(form, out)
            print(form, dict(kills.counts), flush=True)
        writer.stopped.set()
        writer.join()
        last = FollowerProcess(form, out, broker.bootstrap, "none", 0, None)
        expected = sorted(records_of(broker.bootstrap), key=lambda record: record[:2])
        deadline = time.monotonic() + 300
        while len(table_rows(form, out)) < len(expected) and last.process.poll() is None:
            assert time.monotonic() < deadline, last.text
            time.sleep(0.5)
        assert last.end(signal.SIGTERM) == 0, last.text
    assert table_rows(form, out) == expected
    assert named_files(form, out) <= data_files(form, out)
    print(f"{form}: {len(expected):,} records, {kills.number} kills {dict(kills.counts)}")
