"""Compaction against Kafka's cleaner on copies of the same log."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.data import NOW_MS, keyed_batches, open_at
from benchmarks.kafka import oracle
from benchmarks.measure import Row, take_turns
from tailrace.log.cleaner import clean_log
from tailrace.log.cleaner_range import find_dirty_range
from tailrace.log.files import DiskFiles
from tailrace.model.topic_config import TopicConfig

TITLE = "Compaction"
TEXT = (
    "Five million keyed records of about 110 B, 500,000 keys, uncompressed, in segments of 256 MB, compacted once with a "
    "128 MB map. Kafka's time is that of its own cleaner (map and rewrite, unthrottled) in a warm JVM on a copy of the "
    "same files; one thread each."
)
RECORDS, KEYS = 5_000_000, 500_000
SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(256 * 2**20)}


def run(rounds: int = 3) -> list[Row]:
    folder = Path(tempfile.mkdtemp(dir=".")).absolute()
    config = TopicConfig.parse(SETTINGS)
    try:
        log = open_at(folder / "bench-0", config)
        for batch in keyed_batches(RECORDS, KEYS, 150):
            log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS)
        log.roll(NOW_MS)
        log.run_due(NOW_MS)
        log.flush(NOW_MS)
        log.close()
        copy = folder / "copy" / "bench-0"

        def fresh_copy() -> Path:
            shutil.rmtree(copy.parent, ignore_errors=True)
            shutil.copytree(folder / "bench-0", copy)
            return copy

        def ours() -> float:
            opened = open_at(fresh_copy(), config)
            opened.advance_high_watermark(opened.log_end_offset)
            start = time.perf_counter()
            result = clean_log(DiskFiles(), opened, find_dirty_range(opened, None, NOW_MS), NOW_MS)
            elapsed = time.perf_counter() - start
            assert result.stats.records_written <= KEYS
            opened.abandon()
            return elapsed

        with oracle() as kafka:

            def theirs() -> float:
                kafka.reset(NOW_MS)
                opened = kafka.open(fresh_copy(), SETTINGS)
                opened.set_high_watermark(RECORDS)
                start = time.perf_counter()
                result = opened.clean(dedupe_buffer_size=128 * 2**20, io_buffer_size=2 * 512 * 1024)
                elapsed = time.perf_counter() - start
                assert result.messages_written <= KEYS
                opened.crash()
                return elapsed

            theirs()
            mine, other = take_turns(rounds, ours, theirs)
    finally:
        shutil.rmtree(folder)
    return [
        Row(
            "5 M records, 500 k keys",
            f"{mine:.2f} s, {RECORDS / mine / 1e6:.2f} M records/s",
            f"Kafka's cleaner: {other:.2f} s",
            other / mine,
            "≥ 1",
            other / mine >= 1,
        )
    ]
