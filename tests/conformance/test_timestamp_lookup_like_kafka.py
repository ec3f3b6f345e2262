"""Lookup by timestamp: for every timestamp the same record as Kafka's lookup and as a plain scan.

Logs are random: timestamps out of order and equal, all codecs, both timestamp types, several segments, sparse and dense
indexes. Lookups are repeated after records were deleted and after the log was truncated, closed and crashed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.compaction.cleaner import clean_log
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.timestamp_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    find_offset,
)
from tailrace.log.recovery.recovery import open_log
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.batches import batch
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.our_directory import records_in
from tests.support.twin_log import TwinLog

CONFIGS = {
    "dense indexes": {"internal.segment.bytes": "1500", "index.interval.bytes": "0"},
    "sparse indexes": {"internal.segment.bytes": "4000", "index.interval.bytes": "700"},
    "one segment": {"index.interval.bytes": "300"},
    "log append time": {
        "message.timestamp.type": "LogAppendTime",
        "internal.segment.bytes": "1500",
        "index.interval.bytes": "200",
    },
    "recompressed": {"compression.type": "lz4", "internal.segment.bytes": "2000", "index.interval.bytes": "100"},
}
SPECIAL = [EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED]


class Timestamps:
    """Random timestamps: mostly growing, often equal, sometimes far back, ahead, or absent."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.latest = START_MS

    def next(self) -> int:
        dice = self.random.random()
        if dice < 0.3:
            return self.latest
        if dice < 0.6:
            self.latest += self.random.choice([1, 2, 5, 40])
            return self.latest
        if dice < 0.95:
            return self.latest - self.random.choice([1, 3, 20, 100, 500])
        return self.random.choice([-1, 0, self.latest + 60, START_MS - 100_000])

    def batch(self) -> bytes:
        builder = BatchBuilder(codec=self.random.choice(list(Codec)))
        for _ in range(self.random.choice([1, 1, 2, 3, 8])):
            builder.append(self.next(), b"key", self.random.randbytes(self.random.choice([0, 10, 60])))
        return builder.build()


class Scan:
    """Every record in a log's segments, decoded, with Kafka's lookup rules applied without an index."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.segments = [(segment, records_in(segment.log.read(0, segment.size))) for segment in log.segments]
        self.records = [record for _, records in self.segments for record in records]

    def every_time(self) -> list[int]:
        times = {record.timestamp for record in self.records}
        return sorted({near for time in times for near in (time - 1, time, time + 1) if near >= 0})

    def find(self, time: int) -> tuple[int, int] | None:
        """Return (timestamp, offset) of the first record at or after a time, or None.

        The first segment that reaches the time decides: if all its records at or after the time are below the log
        start, later segments are not searched.
        """
        for segment, records in self.segments:
            latest = max((record.timestamp for record in records), default=-1)
            if latest >= time or (latest < 0 and segment.retention_timestamp_ms() >= time):
                found = (r for r in records if r.timestamp >= time and r.offset >= self.log.log_start_offset)
                return next(((record.timestamp, record.offset) for record in found), None)
        return None

    def find_largest(self) -> tuple[int, int] | None:
        """Return (timestamp, offset) of the first record with the largest timestamp, even below the log start."""
        timed = [record for record in self.records if record.timestamp_type != TimestampType.NO_TIMESTAMP]
        latest = max((record.timestamp for record in timed), default=-1)
        return next(((r.timestamp, r.offset) for r in timed if r.timestamp == latest), None)


def assert_like_a_scan(log: PartitionLog) -> list[int]:
    """Compare the lookup of every timestamp, and of its neighbours, with a scan. Return the timestamps."""
    scan = Scan(log)
    times = scan.every_time()
    for time in times:
        found = find_offset(log, time)
        assert (None if found is None else (found.timestamp, found.offset)) == scan.find(time), time
    largest = find_offset(log, MAX_TIMESTAMP)
    assert (None if largest is None else (largest.timestamp, largest.offset)) == scan.find_largest()
    return times


def batch_ends(log: PartitionLog) -> list[int]:
    return [header.next_offset for segment in log.segments for header in segment.headers()]


class Lookups:
    """One random log and its changes; `check` is called after every change."""

    def __init__(self, log: Any, seed: int) -> None:
        self.log = log
        self.times = Timestamps(seed)
        self.random = self.times.random

    def grow(self, batches: int) -> None:
        for _ in range(batches):
            self.log.append(self.times.batch())
            if self.random.random() < 0.2:
                self.log.advance_clock(self.random.choice([1, 7, 300]))

    def run(self) -> None:
        log = self.log
        self.grow(30)
        log.check()
        log.set_high_watermark(log.ours.log_end_offset)
        log.delete_records(self.random.randrange(log.ours.log_end_offset // 2))
        log.check()
        log.truncate_to(self.random.choice([end for end in batch_ends(log.ours) if end > log.ours.log_end_offset // 2]))
        log.check()
        self.grow(8)
        log.check()
        log.shut_down()
        log.open(clean=True)
        log.check()
        self.grow(5)
        log.check()
        log.crash()
        log.open(clean=False)
        log.check()
        self.grow(5)
        log.set_high_watermark(log.ours.log_end_offset)
        log.delete_records(log.ours.log_end_offset)
        log.check()


class OursAndKafkas(TwinLog):
    """Both logs, compared with each other and with a scan."""

    def check(self) -> None:
        self.assert_same_lookups([*assert_like_a_scan(self.ours), *SPECIAL])


class OursAlone:
    """Our log, compared with a scan."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.config = parse_topic_config(settings)
        self.now_ms = START_MS
        self.log_start_offset = self.recovery_point = 0
        self.open(clean=True)

    def open(self, *, clean: bool) -> None:
        self.ours = open_log(
            DiskFiles(),
            str(self.folder),
            self.config,
            now_ms=self.now_ms,
            log_start_offset=self.log_start_offset,
            recovery_point=self.recovery_point,
            clean=clean,
        )

    def append(self, data: bytes) -> None:
        self.ours.append_as_leader(bytearray(data), leader_epoch=0, now_ms=self.now_ms)

    def set_high_watermark(self, offset: int) -> None:
        self.ours.advance_high_watermark(offset)

    def advance_clock(self, ms: int) -> None:
        self.now_ms += ms
        self.ours.run_due(self.now_ms)

    def delete_records(self, offset: int) -> None:
        self.ours.delete_records(offset, self.now_ms)

    def truncate_to(self, offset: int) -> None:
        self.ours.truncate_to(offset, self.now_ms)

    def shut_down(self) -> None:
        self.ours.flush(self.now_ms)
        self._note()
        self.ours.close()

    def crash(self) -> None:
        self._note()
        self.ours.abandon()

    def _note(self) -> None:
        self.log_start_offset, self.recovery_point = self.ours.log_start_offset, self.ours.recovery_point

    def check(self) -> None:
        assert_like_a_scan(self.ours)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(2))
def test_every_timestamp_finds_the_same_record_as_a_scan(config: str, seed: int, tmp_path: Path) -> None:
    Lookups(OursAlone(tmp_path / "topic-0", CONFIGS[config]), seed).run()


@pytest.mark.kafka
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(10, 13))
def test_every_timestamp_finds_the_same_record_as_kafka(
    config: str, seed: int, log_oracle: LogOracle, tmp_path: Path
) -> None:
    log_oracle.reset()
    Lookups(OursAndKafkas(log_oracle, tmp_path, CONFIGS[config]), seed).run()


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(100, 200))
def test_every_timestamp_of_more_logs_finds_the_same_record_as_kafka(
    config: str, seed: int, log_oracle: LogOracle, tmp_path: Path
) -> None:
    log_oracle.reset()
    Lookups(OursAndKafkas(log_oracle, tmp_path, CONFIGS[config]), seed).run()


@pytest.mark.kafka
@pytest.mark.parametrize("magic", [0, 1])
def test_every_timestamp_in_a_log_of_old_messages_finds_the_same_record_as_kafka(
    magic: int, log_oracle: LogOracle, tmp_path: Path
) -> None:
    log = OursAndKafkas(log_oracle, tmp_path, CONFIGS["sparse indexes"])
    times = Timestamps(magic)
    for number in range(60):
        first = log.ours.log_end_offset
        kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP
        records = [
            Record(first + n, times.next() if magic else -1, kind, None, times.random.randbytes(40))
            for n in range(1 + number % 4)
        ]
        codec = list(Codec)[number % 4]  # zstd came with record batches
        log.append_as_follower(build_messages(records, magic=magic, codec=codec))
    log.check()
    log.crash()
    log.open(clean=False)
    log.check()
    log.shut_down()
    log.assert_same_files()


@pytest.mark.kafka
def test_a_first_record_from_1970_is_an_index_entry_of_zeros_and_not_padding(
    log_oracle: LogOracle, tmp_path: Path
) -> None:
    log = OursAndKafkas(log_oracle, tmp_path)
    log.append(bytes(batch(b"first", timestamp=0)))
    log.shut_down()
    log.assert_same_files()
    log.open(clean=True)
    log.check()
    log.append(bytes(batch(b"second", timestamp=0)))
    log.check()
    log.shut_down()
    log.assert_same_files()


@pytest.mark.kafka
@pytest.mark.parametrize("seed", range(3))
def test_every_timestamp_in_a_compacted_log_finds_the_same_record_as_kafka(
    seed: int, log_oracle: LogOracle, tmp_path: Path
) -> None:
    """The lookups include timestamps of removed records, and batches whose base timestamp is a delete horizon."""
    settings = {**CONFIGS["dense indexes"], "cleanup.policy": "compact", "delete.retention.ms": "1000"}
    log = OursAndKafkas(log_oracle, tmp_path, settings)
    times = Timestamps(seed)
    asked: set[int] = set()
    cleaned: int | None = None
    for _ in range(3):
        for _ in range(25):
            builder = BatchBuilder(codec=times.random.choice(list(Codec)))
            for _ in range(times.random.choice([1, 2, 5])):
                moment = times.next()
                asked |= {max(moment + n, 0) for n in (-1, 0, 1)}
                value = times.random.choice([None, b"value", b"longer value"])
                builder.append(moment, b"key-%d" % times.random.randrange(15), value)
            log.append(builder.build())
        log.set_high_watermark(log.ours.log_end_offset)
        dirty = find_dirty_range(log.ours, cleaned, log.now_ms)
        theirs = log.kafka.clean(cleaned)
        cleaned = clean_log(DiskFiles(), log.ours, dirty, log.now_ms).end_offset
        assert cleaned == theirs.to_offset > 0
        log.assert_same_lookups([*sorted(asked), *SPECIAL])
        log.advance_clock(2000)
    log.shut_down()
    log.assert_same_files()
    log.open(clean=True)
    log.assert_same_lookups([*sorted(asked), *SPECIAL])
