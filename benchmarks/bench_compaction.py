"""Compaction of one partition against Kafka's cleaner on the same files."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.data import NOW_MS, keyed_batches, open_at
from benchmarks.kafka import oracle
from benchmarks.measure import Row, take_turns
from tailrace.log.compaction.cleaner import clean_log
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.disk.files import DiskFiles
from tailrace.model.configs.topic_settings import parse_topic_config
from tests.support.log_oracle import LogOracle

TITLE = "Compaction"
TEXT = (
    "5 million records of about 110 bytes over 500,000 keys (and a million in batches of one), all dirty, 128 MB for "
    "the offset map: everything is read twice, a tenth kept, indexes written, all of it made durable. Kafka's time is "
    "that of its own cleaner in a warm JVM on the same files, without throttling, one thread each. Both read from the "
    "page cache."
)
RECORDS, KEYS = 5_000_000, 500_000
MAP_BYTES = 128 * 2**20
SETTINGS = {"cleanup.policy": "compact"}


def run(rounds: int = 3) -> list[Row]:
    rows = []
    with oracle() as kafka:
        for per_batch, records in ((150, RECORDS), (1, RECORDS // 5)):
            folder = Path(tempfile.mkdtemp(dir=".")).absolute()
            try:
                _write(folder / "made" / "bench-0", per_batch, records)
                ours = partial(_our_seconds, folder)
                theirs = partial(_kafka_seconds, kafka, folder)
                theirs()
                mine, other = take_turns(rounds, ours, theirs)
            finally:
                shutil.rmtree(folder)
            rows.append(
                Row(
                    f"{records / 1e6:g} M records in batches of {per_batch}",
                    f"{mine:.2f} s, {records / mine / 1e6:.2f} M records/s",
                    f"Kafka: {other:.2f} s",
                    other / mine,
                    "≥ 1",
                    other / mine >= 1,
                )
            )
    return rows


def _write(folder: Path, per_batch: int, records: int) -> None:
    log = open_at(folder, parse_topic_config(SETTINGS))
    for batch in keyed_batches(records, records * KEYS // RECORDS, per_batch):
        log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS + records)
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    log.close()


def _copy(folder: Path) -> Path:
    """Return a directory to clean. Sealed files are only renamed and removed, so links are enough."""
    target = folder / "cleaned" / "bench-0"
    shutil.rmtree(folder / "cleaned", ignore_errors=True)
    target.mkdir(parents=True)
    for path in (folder / "made" / "bench-0").iterdir():
        if path.suffix == ".log" and path.stat().st_size:
            os.link(path, target / path.name)
        else:
            shutil.copy(path, target)
    return target


def _our_seconds(folder: Path) -> float:
    log = open_at(_copy(folder), parse_topic_config(SETTINGS))
    log.advance_high_watermark(log.log_end_offset)
    start = time.perf_counter()
    clean_log(DiskFiles(), log, find_dirty_range(log, None, NOW_MS), NOW_MS)
    elapsed = time.perf_counter() - start
    log.abandon()
    return elapsed


def _kafka_seconds(kafka: LogOracle, folder: Path) -> float:
    kafka.reset(NOW_MS)
    log = kafka.open(_copy(folder), SETTINGS)
    log.set_high_watermark(log.state().log_end_offset)
    start = time.perf_counter()
    log.clean(dedupe_buffer_size=MAP_BYTES)
    elapsed = time.perf_counter() - start
    log.crash()
    return elapsed
