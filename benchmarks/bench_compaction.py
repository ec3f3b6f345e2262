"""Compaction of one partition against Kafka's cleaner on the same files."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.data import NOW_MS, keyed_batches, open_at
from benchmarks.kafka import oracle
from benchmarks.measure import Row, cpu_and_wall, take_turns
from tailrace.log.cleaner import clean_log
from tailrace.log.cleaner_range import find_dirty_range
from tailrace.log.files import DiskFiles
from tailrace.model.topic_config import TopicConfig
from tests.support.log_oracle import LogOracle

TITLE = "Compaction"
TEXT = (
    "5 million records of about 110 bytes over 500,000 keys, all dirty, 128 MB for the offset map: read twice, a tenth "
    "kept, indexes written, everything durable. Kafka's figures are those of its own cleaner, warmed up by one round "
    "on the same files, without throttling. CPU seconds of either process, its other threads included."
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
                _kafka_cpu_seconds(kafka, folder)
                mine, other = take_turns(
                    rounds,
                    lambda folder=folder: _our_cpu_seconds(folder),
                    lambda folder=folder: _kafka_cpu_seconds(kafka, folder),
                )
            finally:
                shutil.rmtree(folder)
            rows.append(
                Row(
                    f"{records / 1e6:g} M records in batches of {per_batch}",
                    f"{mine:.2f} CPU s, {records / mine / 1e6:.2f} M records/s",
                    f"Kafka: {other:.2f} CPU s",
                    other / mine,
                    "≥ 1",
                    other / mine >= 1,
                )
            )
    return rows


def _write(folder: Path, per_batch: int, records: int) -> None:
    log = open_at(folder, TopicConfig.parse(SETTINGS))
    for batch in keyed_batches(records, records * KEYS // RECORDS, per_batch):
        log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    log.close()


def _copy(folder: Path) -> Path:
    """A directory to clean: sealed files are only ever renamed and removed, so links will do."""
    target = folder / "cleaned" / "bench-0"
    shutil.rmtree(folder / "cleaned", ignore_errors=True)
    target.mkdir(parents=True)
    for path in (folder / "made" / "bench-0").iterdir():
        if path.suffix == ".log" and path.stat().st_size:
            os.link(path, target / path.name)
        else:
            shutil.copy(path, target)
    return target


def _our_cpu_seconds(folder: Path) -> float:
    log = open_at(_copy(folder), TopicConfig.parse(SETTINGS))
    log.advance_high_watermark(log.log_end_offset)
    dirty = find_dirty_range(log, None, NOW_MS)
    cpu, _ = cpu_and_wall(lambda: clean_log(DiskFiles(), log, dirty, NOW_MS))
    log.abandon()
    return cpu


def _kafka_cpu_seconds(kafka: LogOracle, folder: Path) -> float:
    kafka.reset(NOW_MS)
    log = kafka.open(_copy(folder), SETTINGS)
    log.set_high_watermark(log.state().log_end_offset)
    before = _process_cpu_seconds(kafka.process_id)
    log.clean(dedupe_buffer_size=MAP_BYTES)
    after = _process_cpu_seconds(kafka.process_id)
    log.crash()
    return after - before


def _process_cpu_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
