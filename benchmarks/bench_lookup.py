"""Warm lookups by offset and by time in a full segment."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.data import NOW_MS, batch_of, fill, open_at
from benchmarks.measure import Row, take_turns
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.watermarks import Isolation

TITLE = "Lookup"
TEXT = (
    "A warm log of 1 GB in 16 KB batches, with as many index entries. By offset: `PartitionLog.read` up to the high "
    "watermark, which returns a slice of the file. By time: the first record at or after a timestamp, for which one "
    "batch is decompressed. The figures are CPU time of the process."
)
LOOKUPS = 20_000


def run(rounds: int = 5) -> list[Row]:
    folder = Path(tempfile.mkdtemp(dir="."))
    try:
        log = open_at(folder / "bench-0")
        fill(log, batch_of(16 * 2**10, 1000), 2**30 - 2**20)
        chance = random.Random(3)
        offsets = [chance.randrange(log.log_end_offset) for _ in range(LOOKUPS)]
        times = [NOW_MS + chance.randrange(3) for _ in range(LOOKUPS // 10)]

        def by_offset() -> float:
            start = time.process_time()
            for offset in offsets:
                log.read(offset, 2**20, Isolation.READ_UNCOMMITTED, at_least_one=True)
            return (time.process_time() - start) / len(offsets) * 1e6

        def by_time() -> float:
            start = time.process_time()
            for timestamp in times:
                find_offset(log, timestamp)
            return (time.process_time() - start) / len(times) * 1e6

        offset_us, time_us = take_turns(rounds, by_offset, by_time)
        log.abandon()
    finally:
        shutil.rmtree(folder)
    return [
        Row("by offset", f"{offset_us:.1f} µs", "", None, "< 15 µs", offset_us < 15),
        Row("by timestamp", f"{time_us:.1f} µs", "", None, "", None),
    ]
