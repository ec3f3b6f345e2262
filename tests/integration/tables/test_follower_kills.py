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
from tests.support.filled_topics import numbered, put

SEED = int(os.environ.get("TAILRACE_FOLLOWER_SEED", "1"))
KILLS = int(os.environ.get("TAILRACE_FOLLOWER_KILLS", "20"))
POINTS = ("write", "commit", "end", "merge", "time")
PARTITIONS = 2


class Writer(threading.Thread):
    """Writes numbered records to the topic until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._address = bootstrap
        self._stopped = threading.Event()
        self.written = [0] * PARTITIONS

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            for partition in range(PARTITIONS):
                put(self._address, "t", partition, numbered(7, self.written[partition]))
                self.written[partition] += 7

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def follow(form: str, folder: Path, bootstrap: str, point: str, count: int) -> subprocess.Popen[str]:
    asked = {
        "form": form,
        "folder": str(folder),
        "bootstrap": bootstrap,
        "topics": ["t"],
        "point": point,
        "count": count,
    }
    command = [sys.executable, "-m", "tests.support.follower_process", json.dumps(asked)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_kills(
    form: str, folder: Path, broker: tailrace.Broker, kills: int, *, seed: int, has_rival: bool = False
) -> list[dict[str, Any]]:
    """Kill followers while records are written, then let one finish. Return the rows of the table.

    With a rival, another follower of the table runs all the time.
    """
    dice = random.Random(seed)
    writer = Writer(broker.bootstrap)
    writer.start()
    rival = follow(form, folder, broker.bootstrap, "none", 0) if has_rival else None
    for number in range(kills):
        # With a rival, a follower may not reach a certain commit, so a time has to kill it.
        point = "time" if has_rival else POINTS[number % len(POINTS)]
        count = dice.randint(1, 3)
        if point == "time":
            point = f"time:{dice.uniform(0.5, 3.0):.2f}"
        process = follow(form, folder, broker.bootstrap, point, count)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, errors
    writer.stop()
    if rival is not None:
        rival.terminate()
        _, errors = rival.communicate(timeout=120)
        assert rival.returncode == 0, errors
    expected = [(partition, offset) for partition in range(PARTITIONS) for offset in range(writer.written[partition])]
    process = follow(form, folder, broker.bootstrap, "none", 0)
    assert process.stdout is not None
    process.stdout.readline()
    last = threading.Event()
    for _ in range(600):
        if last.wait(0.5) or process.poll() is not None:
            break
        found = rows(form, folder)
        if len(found) >= len(expected):
            break
    process.terminate()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found = rows(form, folder)
    assert [(row["partition"], row["offset"]) for row in found] == expected
    assert all(row["key"] == b"key %d" % row["offset"] for row in found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_that_is_killed_adds_each_record_once(form: str, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=PARTITIONS)
        run_kills(form, tmp_path / "out", broker, KILLS, seed=SEED)
    assert not list((tmp_path / "out").rglob("_tailrace/*.json"))
    # Files of merges remain for older snapshots; every file that the table names is there.
    assert named_files(form, tmp_path / "out") <= data_files(form, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_followers_that_are_killed_beside_another_add_each_record_once(form: str, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=PARTITIONS)
        run_kills(form, tmp_path / "out", broker, KILLS // 4, seed=SEED, has_rival=True)
    assert named_files(form, tmp_path / "out") <= data_files(form, tmp_path / "out")
