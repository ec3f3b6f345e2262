"""A follower is killed with -9 again and again, and its table has each record of the topic once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tests.support.exported_tables import FORMATS, data_files, named_files, rows
from tests.support.filled_topics import put

SEED = int(os.environ.get("TAILRACE_FOLLOWER_SEED", "1"))
KILLS = int(os.environ.get("TAILRACE_FOLLOWER_KILLS", "20"))
POINTS = ("write", "commit", "end", "merge", "time")
LATEST_POINTS = ("write", "commit", "end", "time")
KEYS = 60  # of each partition, in tables with one row for each key
PARTITIONS = 2


class Writer(threading.Thread):
    """Writes numbered records to the topic until it is stopped."""

    def __init__(self, bootstrap: str, keys: int) -> None:
        super().__init__(daemon=True)
        self._keys = keys
        self._address = bootstrap
        self._stopped = threading.Event()
        self.written = [0] * PARTITIONS

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            for partition in range(PARTITIONS):
                offsets = range(self.written[partition], self.written[partition] + 7)
                put(self._address, "t", partition, [(b"key %d" % (n % self._keys), b"value %d" % n) for n in offsets])
                self.written[partition] += 7

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def follow(
    form: str, folder: Path, bootstrap: str, point: str, count: int, *, latest: bool = False
) -> subprocess.Popen[str]:
    asked = {
        "form": form,
        "folder": str(folder),
        "bootstrap": bootstrap,
        "topics": ["t"],
        "point": point,
        "count": count,
        "latest": latest,
    }
    command = [sys.executable, "-m", "tests.support.follower_process", json.dumps(asked)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_kills(
    form: str,
    folder: Path,
    broker: tailrace.Broker,
    kills: int,
    *,
    seed: int,
    has_rival: bool = False,
    latest: bool = False,
) -> list[dict[str, Any]]:
    """Kill followers while records are written, then let one finish. Return the rows of the table.

    With `latest`, the table has one row for each key. With a rival, another follower of the table runs all the time.
    """
    dice = random.Random(seed)
    keys = KEYS if latest else 10**9
    points = LATEST_POINTS if latest else POINTS
    writer = Writer(broker.bootstrap, keys)
    writer.start()
    rival = follow(form, folder, broker.bootstrap, "none", 0, latest=latest) if has_rival else None
    for number in range(kills):
        # With a rival, a follower may not reach a certain commit, so a time has to kill it.
        point = "time" if has_rival else points[number % len(points)]
        count = dice.randint(1, 3)
        if point == "time":
            point = f"time:{dice.uniform(0.5, 3.0):.2f}"
        process = follow(form, folder, broker.bootstrap, point, count, latest=latest)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, errors
    writer.stop()
    if rival is not None:
        rival.terminate()
        _, errors = rival.communicate(timeout=120)
        assert rival.returncode == 0, errors
    expected = [
        (partition, offset)
        for partition in range(PARTITIONS)
        for offset in range(max(0, writer.written[partition] - keys), writer.written[partition])
    ]
    process = follow(form, folder, broker.bootstrap, "none", 0, latest=latest)
    assert process.stdout is not None
    process.stdout.readline()
    last = threading.Event()
    for _ in range(600):
        if last.wait(0.5) or process.poll() is not None:
            break
        if [(row["partition"], row["offset"]) for row in rows(form, folder)][-1:] == expected[-1:]:
            break
    process.terminate()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found = rows(form, folder)
    assert [(row["partition"], row["offset"]) for row in found] == expected
    assert all(row["key"] == b"key %d" % (row["offset"] % keys) for row in found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_that_is_killed_adds_each_record_once(form: str, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=PARTITIONS, config={"retention.ms": "-1"})
        run_kills(form, tmp_path / "out", broker, KILLS, seed=SEED)
    assert not list((tmp_path / "out").rglob("_tailrace/*.json"))
    # Files of merges remain for older snapshots; every file that the table names is there.
    assert named_files(form, tmp_path / "out") <= data_files(form, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_that_is_killed_keeps_one_row_for_each_key(form: str, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=PARTITIONS, config={"retention.ms": "-1"})
        run_kills(form, tmp_path / "out", broker, KILLS, seed=SEED, latest=True)
    assert named_files(form, tmp_path / "out") <= data_files(form, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_followers_that_are_killed_beside_another_add_each_record_once(form: str, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=PARTITIONS, config={"retention.ms": "-1"})
        run_kills(form, tmp_path / "out", broker, KILLS // 4, seed=SEED, has_rival=True)
    assert named_files(form, tmp_path / "out") <= data_files(form, tmp_path / "out")
