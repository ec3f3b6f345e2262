"""Compaction by one or more tasks writes the same bytes as the broker's log cleaner."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.log.compaction.cleaner_kernels import SLOT_SIZE
from tailrace.spark.jobs.compact.compact import compact
from tailrace.spark.jobs.compact.single_task import SingleTask, compact_in_one_task
from tailrace.spark.jobs.compact.tasks import Written
from tests.support.command import contents
from tests.support.command import tailrace as tailrace_command
from tests.support.filled_topics import put
from tests.support.inline_spark import InlineSpark
from tests.support.random_compacted import (
    NOW_MS,
    TOPIC,
    RandomLog,
    clean_locally,
    copied,
    opened_and_closed,
)


def compacted_twice(tmp_path: Path, seed: int, *, rounds: int = 3, **limits: int) -> None:
    """Let both compact a growing log in two rounds. The second round is after the delete horizons of the first."""
    log = RandomLog(seed)
    here, there = tmp_path / "here", tmp_path / "there"
    now_ms = NOW_MS
    for round_ in range(rounds):
        log.grow(here, log.chance.choice([0, 20, 60]) if round_ else 60, now_ms)
        shutil.rmtree(there, ignore_errors=True)
        copied(here, there)
        now_ms += log.chance.choice([10, 2000])
        clean_locally(here, log.settings, now_ms)
        compact(InlineSpark(), str(there), topics=[TOPIC], configs={TOPIC: log.settings}, now_ms=now_ms, **limits)
        opened_and_closed(there, log.settings, now_ms)
        assert contents(there) == contents(here)
        now_ms += log.chance.choice([10, 2000])


SHARED = {"single_task_bytes": 0}


@pytest.mark.parametrize("seed", range(5))
def test_several_tasks_write_the_bytes_of_the_log_cleaner(seed: int, tmp_path: Path) -> None:
    compacted_twice(tmp_path, seed, **SHARED)


@pytest.mark.parametrize("seed", range(5))
def test_a_single_task_writes_the_bytes_of_the_log_cleaner(seed: int, tmp_path: Path) -> None:
    compacted_twice(tmp_path, seed)


def test_several_tasks_are_used_if_the_keys_exceed_the_map_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []

    def watched(task: SingleTask, **limits: Any) -> list[Written] | None:
        answers.append(compact_in_one_task(task, **limits))
        return answers[-1]

    monkeypatch.setattr("tailrace.spark.jobs.compact.compact.compact_in_one_task", watched)
    compacted_twice(tmp_path, 1, map_bytes=8 * SLOT_SIZE)
    assert None in answers


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_several_tasks_write_the_bytes_of_the_log_cleaner_for_many_logs(seed: int, tmp_path: Path) -> None:
    compacted_twice(tmp_path, seed, rounds=5, **(SHARED if seed % 2 else {}))


def test_a_running_broker_swaps_in_a_proposal(tmp_path: Path) -> None:
    """The directory is in use, so the job leaves a proposal, and the broker's cleaner swaps it in."""
    data, folder = tmp_path / "data", tmp_path / "data" / "t-0"
    settings = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "1.0"}
    configs = {"log.cleaner.backoff.ms": "200", "log.flush.offset.checkpoint.interval.ms": "100"}
    with tailrace.Broker(data, config=configs) as broker:
        broker.create_topic("t", config=settings)
        rows = [(b"k%d" % (number % 5), b"v%d" % number) for number in range(400)]
        put(broker.bootstrap, "t", 0, rows)
        wait_for(lambda: "t 0 400" in (data / "replication-offset-checkpoint").read_text())
        found = compact(InlineSpark(), str(data), configs={"t": settings})
        assert [(one.name, one.is_swapped) for one in found.partitions] == [("t-0", False)]
        assert found.partitions[0].segments > 2
        wait_for(lambda: f"t 0 {found.partitions[0].clean_to}" in (data / "cleaner-offset-checkpoint").read_text())
        assert not list(folder.glob("*propos*"))
        left = tailrace_command("log", "cat", folder, "--json").json_lines
    assert {row["key"]: row["value"] for row in left} == {key.decode(): value.decode() for key, value in rows}
    assert sum(row["offset"] < found.partitions[0].clean_to for row in left) == 5
    assert tailrace_command("log", "verify", data).status == 0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            if condition():
                return
        except FileNotFoundError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)
