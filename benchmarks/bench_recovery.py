"""Recovery after a crash against Kafka's own recovery of the same directory."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.data import NOW_MS, batch_of, fill, open_at
from benchmarks.kafka import oracle
from benchmarks.measure import Row, take_turns

TITLE = "Recovery"
TEXT = (
    "A log of 2 GB in two segments, abandoned as by a crash with its recovery point at zero: every batch is read, its "
    "checksum checked, indexes, epochs and producers rebuilt. Kafka's time is that of its own log loader on the same "
    "files in a warm JVM, one thread each. Both read from the page cache."
)
SIZE = 2 * 2**30


def run(rounds: int = 3) -> list[Row]:
    rows = []
    with oracle() as kafka:
        for batch_size in (16 * 2**10, 128 * 2**10):
            folder = Path(tempfile.mkdtemp(dir=".")).absolute()
            try:
                log = open_at(folder / "bench-0")
                fill(log, batch_of(batch_size, 1000), SIZE)
                log.abandon()

                def ours(folder: Path = folder) -> float:
                    start = time.perf_counter()
                    opened = open_at(folder / "bench-0", clean=False)
                    elapsed = time.perf_counter() - start
                    opened.abandon()
                    return elapsed

                def theirs(folder: Path = folder) -> float:
                    kafka.reset(NOW_MS)
                    start = time.perf_counter()
                    opened = kafka.open(folder / "bench-0", clean_shutdown=False)
                    elapsed = time.perf_counter() - start
                    opened.crash()
                    return elapsed

                theirs()
                mine, other = take_turns(rounds, ours, theirs)
            finally:
                shutil.rmtree(folder)
            rows.append(
                Row(
                    f"2 GB in {batch_size // 1024} KB batches",
                    f"{mine:.2f} s, {SIZE / mine / 1e9:.2f} GB/s",
                    f"Kafka: {other:.2f} s",
                    other / mine,
                    "≥ 3",
                    other / mine >= 3,
                )
            )
    return rows
