"""A process that is killed loses nothing it has written: the system keeps what it took."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles
from tailrace.records.batch import split_batches
from tailrace.records.record import iter_records
from tests.crash.appending_process import CONFIG, NOW, PARTITION, value
from tests.crash.log_checks import check_log
from tests.support.batches import stored_batches

REPOSITORY = Path(__file__).resolve().parents[2]


def run_and_kill(directory: Path, seed: int, lines: int) -> dict[str, int]:
    """Run a process, kill it after a number of lines, and return the last offset that it printed for each kind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.appending_process", str(directory), str(seed)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    offsets: dict[str, int] = {}
    with process:
        for number, line in enumerate(process.stdout):
            if not line.endswith("\n"):
                break  # cut short by its end
            word, offset = line.split()
            offsets[word] = int(offset)
            if number == lines:
                process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, f"seed {seed}: it ended by itself"
    return offsets


def check_directory(path: Path, offsets: dict[str, int], seed: int) -> None:
    directory = LogDirectory(DiskFiles(), str(path), new_id=lambda: "id")
    report = directory.load(lambda topic: CONFIG, NOW)
    assert not report.was_clean
    assert not report.failed, f"seed {seed}"
    log = directory.logs[PARTITION]
    check_log(log)
    # Pipe and file are not one: it may have written more than it came to say, and never less.
    assert log.log_end_offset > offsets["appended"], f"seed {seed}"
    assert log.log_end_offset > offsets.get("flushed", -1), f"seed {seed}"
    assert log.log_start_offset >= offsets.get("started", 0), f"seed {seed}"
    offset = log.segments.first.base_offset
    for stored in stored_batches(log):
        (one,) = split_batches(stored.data)
        for record in iter_records(one):
            assert (record.offset, record.value) == (offset, value(offset)), f"seed {seed}"
            offset += 1
    assert offset == log.log_end_offset
    directory.abandon()


def kill_rounds(path: Path, rounds: int, seed: int) -> None:
    rng = Random(seed)
    for number in range(rounds):
        offsets = run_and_kill(path, seed + number, rng.randrange(5, 400))
        check_directory(path, offsets, seed + number)


def test_a_killed_process_loses_no_written_bytes(tmp_path: Path) -> None:
    kill_rounds(tmp_path, rounds=5, seed=100)


@pytest.mark.slow
def test_a_process_killed_many_times_loses_no_written_bytes(tmp_path: Path) -> None:
    kill_rounds(tmp_path, rounds=60, seed=1_000)
