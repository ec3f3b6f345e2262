"""Opening 2,000 partitions after a clean stop."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.data import NOW_MS, batch_of
from benchmarks.measure import Row, take_turns
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig

TITLE = "Start"
TEXT = "A log directory of 2,000 partitions with records in each, stopped cleanly, loaded by `LogDirectory.load`."
PARTITIONS = 2000


def run(rounds: int = 3) -> list[Row]:
    folder = Path(tempfile.mkdtemp(dir="."))

    def directory() -> LogDirectory:
        return LogDirectory(DiskFiles(), str(folder), new_id=lambda: "0" * 32)

    try:
        made = directory()
        made.load(lambda topic: TopicConfig(), NOW_MS)
        batch = batch_of(16 * 2**10, 1000)
        for number in range(PARTITIONS):
            log = made.create(TopicPartition(f"topic{number % 20}", number // 20), TopicConfig(), NOW_MS)
            for _ in range(3):
                log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS)
            log.abandon()
        made.close(NOW_MS)

        def opened() -> float:
            again = directory()
            start = time.perf_counter()
            report = again.load(lambda topic: TopicConfig(), NOW_MS)
            elapsed = time.perf_counter() - start
            assert report.was_clean
            assert len(again.logs) == PARTITIONS
            again.close(NOW_MS)
            return elapsed

        (seconds,) = take_turns(rounds, opened)
    finally:
        shutil.rmtree(folder)
    return [Row("2,000 partitions after a clean stop", f"{seconds:.2f} s", "", None, "< 1 s", seconds < 1)]
