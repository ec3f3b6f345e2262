"""Recovery after a crash against Kafka's own recovery of the same directory."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.data import NOW_MS, batch_of, fill, open_at
from benchmarks.kafka import cpu_seconds, oracle
from benchmarks.measure import Row, cpu_and_wall, take_turns
from tests.support.log_oracle import LogOracle

TITLE = "Recovery"
TEXT = (
    "A log of one or two segments, abandoned as by a crash with its recovery point at zero: every batch is read, its "
    "checksum checked, indexes, epochs and producers rebuilt. Kafka's time is that of its own log loader on the same "
    "files, in a JVM with its default compilers, one thread each. Both read from the page cache, and take turns.\n\n"
    "*In a new process* is what happens after a crash: each time a JVM that has opened one small log so far; wall time "
    "counts. *Warmed up* is a JVM that has recovered this log three times before, its loops compiled to machine code; "
    "CPU time of either process counts. Python has nothing to warm up.\n\n"
    "Where ours goes, per GB of 16 KB batches: 0.20 s to copy it out of the page cache, 0.09 s for checksums, offsets "
    "and indexes. Before the compiled loop that was 0.6 s more. With large batches Kafka does little else but copy and "
    "check either. A second thread that copies ahead made it slower, as both need the interpreter between two batches. "
    "A mapping would save a part of the copy, but turns a failing disk into a signal that ends the process."
)
CASES = ((2**28, 2**10), (2**31, 2**14), (2**31, 2**17))  # bytes of the log, bytes of a batch
WARM_UP = 3


def run(rounds: int = 5) -> list[Row]:
    rows = []
    for size, batch_size in CASES:
        folder = Path(tempfile.mkdtemp(dir=".")).absolute()
        try:
            log = open_at(folder / "bench-0")
            fill(log, batch_of(batch_size, 1000), size)
            log.abandon()
            log = open_at(folder / "small-0")
            fill(log, batch_of(batch_size, 1000), 2**20)
            log.abandon()
            work = f"{size // 2**20} MB in {batch_size // 2**10} KB batches"
            rows += [_in_new_processes(work, size, folder, rounds), _warmed_up(work, size, folder, rounds)]
        finally:
            shutil.rmtree(folder)
    return rows


def _in_new_processes(work: str, size: int, folder: Path, rounds: int) -> Row:
    def ours() -> float:
        return _recover(folder)[1]

    def theirs() -> float:
        with oracle() as kafka:
            _recover_in(kafka, folder / "small-0")
            return _recover_in(kafka, folder / "bench-0")[1]

    mine, other = take_turns(rounds, ours, theirs)
    return _row(f"{work}, in a new process", size, mine, other, "≥ 3")


def _warmed_up(work: str, size: int, folder: Path, rounds: int) -> Row:
    with oracle() as kafka:
        for _ in range(WARM_UP):
            _recover_in(kafka, folder / "bench-0")
        mine, other = take_turns(rounds, lambda: _recover(folder)[0], lambda: _recover_in(kafka, folder / "bench-0")[0])
    return _row(f"{work}, warmed up", size, mine, other, "")


def _recover(folder: Path) -> tuple[float, float]:
    """Return (CPU, wall) seconds of a recovery."""
    opened = []
    times = cpu_and_wall(lambda: opened.append(open_at(folder / "bench-0", clean=False)))
    opened[0].abandon()
    return times


def _recover_in(kafka: LogOracle, directory: Path) -> tuple[float, float]:
    kafka.reset(NOW_MS)
    cpu, wall = cpu_seconds(kafka.pid), time.perf_counter()
    opened = kafka.open(directory, clean_shutdown=False)
    times = cpu_seconds(kafka.pid) - cpu, time.perf_counter() - wall
    opened.crash()
    return times


def _row(work: str, size: int, mine: float, other: float, goal: str) -> Row:
    ratio = other / mine
    figure = f"{mine:.2f} s, {size / mine / 1e9:.2f} GB/s"
    return Row(work, figure, f"Kafka: {other:.2f} s", ratio, goal, ratio >= 3 if goal else None)
