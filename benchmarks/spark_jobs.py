"""Whole-log jobs: verify and compact on Spark, in one process, and Kafka's own tools, on the same files.

    python -m benchmarks.spark_jobs [millions of records]

Keyed records of about 110 bytes in one partition of 64 MB segments, a tenth as many keys, all dirty. CPU seconds
(wall): of Spark those of its JVM and workers, started and warm; of Kafka's DumpLogSegments those of its process, start
and all; of Kafka's cleaner those of a warm JVM. The best of the rounds counts.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.data import NOW_MS, keyed_batches, open_at
from benchmarks.kafka import JVM_FLAGS, cpu_seconds, oracle
from benchmarks.spark_read import cpu_of_spark
from tailrace.log.compaction.cleaner import clean_log
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.verify import verify_partition
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.spark.jobs.compact.compact import compact
from tailrace.spark.jobs.verify.verify import verify
from tests.support.kafka_install import kafka_installation
from tests.support.log_oracle import LogOracle
from tests.support.spark_session import spark_session, stop_session

SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(64 * 2**20)}
ROUNDS = 2
PER_BATCH = 150
DUMP = "org.apache.kafka.tools.DumpLogSegments"

Took = tuple[float, float]


def write(folder: Path, records: int) -> None:
    log = open_at(folder, parse_topic_config(SETTINGS))
    for batch in keyed_batches(records, records // 10, PER_BATCH):
        log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS + records)
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    log.close()


def copy(made: Path, target: Path) -> Path:
    """Return a directory to compact. Sealed files are only renamed and removed, so links are enough."""
    shutil.rmtree(target, ignore_errors=True)
    folder = target / made.name
    folder.mkdir(parents=True)
    for path in made.iterdir():
        if path.suffix == ".log" and path.stat().st_size:
            os.link(path, folder / path.name)
        else:
            shutil.copy(path, folder)
    return folder


def timed(cpu: Callable[[], float], work: Callable[[], object]) -> Took:
    before, start = cpu(), time.perf_counter()
    work()
    return cpu() - before, time.perf_counter() - start


def ours() -> float:
    return time.process_time()


def of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verifying(spark: Any, made: Path) -> dict[str, Callable[[], Took]]:
    folder = read_data_directory(DiskFiles(), str(made)).folders[0]
    logs = ",".join(str(path) for path in sorted(made.glob("*.log")))
    dump = kafka_installation().command(DUMP, "--deep-iteration", "--files", logs, jvm_flags=JVM_FLAGS)

    def dumped() -> None:
        subprocess.run(dump, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    return {
        "on Spark": lambda: timed(cpu_of_spark, lambda: verify(spark, str(made))),
        "on Spark, deep": lambda: timed(cpu_of_spark, lambda: verify(spark, str(made), deep=True)),
        "one process": lambda: timed(ours, lambda: verify_partition(DiskFiles(), folder)),
        "one process, deep": lambda: timed(ours, lambda: verify_partition(DiskFiles(), folder, deep=True)),
        "Kafka's DumpLogSegments": lambda: timed(of_children, dumped),
    }


def compacting(spark: Any, made: Path, scratch: Path, kafka: LogOracle) -> dict[str, Callable[[], Took]]:
    def on_spark() -> Took:
        folder = copy(made, scratch / "spark")

        def work() -> None:
            compact(spark, str(folder), topics=["bench"], configs={"bench": SETTINGS}, now_ms=NOW_MS)

        return timed(lambda: cpu_of_spark() + ours(), work)

    def locally() -> Took:
        log = open_at(copy(made, scratch / "local"), parse_topic_config(SETTINGS))
        log.advance_high_watermark(log.log_end_offset)
        took = timed(ours, lambda: clean_log(DiskFiles(), log, find_dirty_range(log, None, NOW_MS), NOW_MS))
        log.abandon()
        return took

    def by_kafka() -> Took:
        kafka.reset(NOW_MS)
        log = kafka.open(copy(made, scratch / "kafka"), SETTINGS)
        log.set_high_watermark(log.state().log_end_offset)
        took = timed(lambda: cpu_seconds(kafka.pid), lambda: log.clean(dedupe_buffer_size=128 * 2**20))
        log.crash()
        return took

    return {"on Spark": on_spark, "one process": locally, "Kafka's cleaner": by_kafka}


def show(title: str, ways: dict[str, Callable[[], Took]]) -> None:
    best: dict[str, Took] = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            took = way()
            best[name] = min(best.get(name, took), took)
    print(f"{title}: " + "   ".join(f"{name} {cpu:.1f} ({wall:.1f})" for name, (cpu, wall) in best.items()), flush=True)


def main(arguments: list[str]) -> None:
    records = int(float(arguments[0] if arguments else "5") * 1_000_000)
    with tempfile.TemporaryDirectory(dir=".") as directory, oracle() as kafka:
        scratch = Path(directory).absolute()
        made = scratch / "made" / "bench-0"
        write(made, records)
        size = sum(path.stat().st_size for path in made.glob("*.log"))
        print(f"{records / 1e6:g} M records, {size / 1e6:.0f} MB, CPU seconds (wall)", flush=True)
        spark = spark_session(is_hasty=False)
        try:
            show("verify", verifying(spark, made))
            show("compact", compacting(spark, made, scratch, kafka))
        finally:
            stop_session()


if __name__ == "__main__":
    main(sys.argv[1:])
