"""The same log compacted by Kafka's cleaner and by ours: the same range, the same statistics, the same files."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tailrace.log.compaction.cleaner import Cleaned, CleanerSettings, clean_log
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.disk.files import DiskFiles
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tests.support import oracle_types
from tests.support.batches import end_marker
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.oracle_types import OracleError, OracleRecord
from tests.support.twin_log import Script, TwinLog

pytestmark = pytest.mark.kafka

COMPACT = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "index.interval.bytes": "200",
    "delete.retention.ms": "30000",
    "file.delete.delay.ms": "5000",
}
CONFIGS = {
    "small segments": COMPACT,
    "larger segments": {**COMPACT, "internal.segment.bytes": "20000", "index.interval.bytes": "1000"},
    "log append time": {**COMPACT, "message.timestamp.type": "LogAppendTime"},
    "compact and delete": {**COMPACT, "cleanup.policy": "compact,delete", "retention.bytes": "15000"},
    "lags": {**COMPACT, "min.compaction.lag.ms": "20000", "max.compaction.lag.ms": "60000", "segment.ms": "30000"},
    "tiny indexes": {**COMPACT, "segment.index.bytes": "72"},
    "no retention of deletes": {**COMPACT, "delete.retention.ms": "0"},
    "endless retention of deletes": {**COMPACT, "delete.retention.ms": str(2**63 - 1)},
    "preallocated": {**COMPACT, "preallocate": "true"},
}


# A batch that is written again has Kafka's bytes if the library has the same version: docs/decisions/0003-codecs.md.
CODECS = [codec for codec in Codec if codec != Codec.ZSTD or zstandard.ZSTD_VERSION[:3] == (1, 5, 6)]


class KafkaGaveUp(Exception):
    """Kafka's cleaner has failed where ours continues: the two logs are no longer the same."""


class CompactedTwin(TwinLog):
    """A log that is kept and compacted twice, by Kafka and by Tailrace."""

    clean_offset: int | None = None

    def assert_same_range(self) -> int:
        """Check that both find the same dirty range, and return how many bytes of it can be cleaned."""
        # If there is a gap in the offsets at the high watermark, Kafka moves the high watermark to the next batch on
        # lookup.
        self.ours.advance_high_watermark(self.kafka.state().high_watermark)
        theirs = self.kafka.cleanable_offsets(self.clean_offset)
        ours = find_dirty_range(self.ours, self.clean_offset, self.now_ms)
        assert (
            ours.first_dirty_offset,
            ours.first_uncleanable_offset,
            ours.checkpoint_was_invalid,
            ours.clean_bytes,
            ours.cleanable_bytes,
            ours.cleanable_ratio,
            ours.compaction_delay_ms,
        ) == (
            theirs.first_dirty_offset,
            theirs.first_uncleanable_offset,
            theirs.force_update_checkpoint,
            theirs.clean_bytes,
            theirs.cleanable_bytes,
            theirs.cleanable_ratio,
            theirs.compaction_delay_ms,
        )
        if ours.checkpoint_was_invalid:
            self.clean_offset = ours.first_dirty_offset
        return ours.cleanable_bytes

    def clean(
        self, dedupe_buffer_bytes: int = 2**21, load_factor: float = 0.9, io_buffer_bytes: int = 2**19
    ) -> Cleaned:
        try:
            theirs = self.kafka.clean(
                self.clean_offset,
                dedupe_buffer_size=dedupe_buffer_bytes,
                load_factor=load_factor,
                io_buffer_size=io_buffer_bytes,
            )
        except OracleError as error:
            # Several segments, each with a nearly full index, may need more entries than one index may have.
            if re.search(r"Attempt to append to a full (time )?index", error.message):
                raise KafkaGaveUp from error
            raise
        ours = clean_log(
            DiskFiles(),
            self.ours,
            find_dirty_range(self.ours, self.clean_offset, self.now_ms),
            self.now_ms,
            CleanerSettings(
                dedupe_buffer_bytes=dedupe_buffer_bytes, load_factor=load_factor, io_buffer_bytes=io_buffer_bytes
            ),
        )
        self.ours.run_due(self.now_ms)
        self.clean_offset = ours.end_offset
        stats = ours.stats
        assert (
            ours.end_offset,
            stats.bytes_read,
            stats.bytes_written,
            stats.records_read,
            stats.records_written,
            stats.map_records_read,
            stats.records_without_key,
            stats.map_utilization,
        ) == (
            theirs.to_offset,
            theirs.bytes_read,
            theirs.bytes_written,
            theirs.messages_read,
            theirs.messages_written,
            theirs.map_messages_read,
            theirs.invalid_messages_read,
            theirs.buffer_utilization,
        )
        self.assert_same_sealed_files()
        return ours

    def assert_same_sealed_files(self) -> None:
        """Compare all files except those that Kafka keeps open and preallocated: the indexes of the active segment."""
        active = f"{self.ours.segments.active.base_offset:020d}"
        mine, theirs = (
            {
                path.name: path.read_bytes()
                for path in folder.iterdir()
                if not (path.name.startswith(active) and path.name.endswith("index"))
                and not path.name.endswith("index.deleted")
            }
            for folder in (self.our_folder, self.kafka_folder)
        )
        if self.config.preallocate:
            mine.pop(f"{active}.log"), theirs.pop(f"{active}.log")
        assert sorted(mine) == sorted(theirs), "different files"
        for name in mine:
            assert mine[name] == theirs[name], name


class CompactingScript(Script):
    """A script of appends of all kinds, repeated keys, and a cleaning from time to time."""

    twin: CompactedTwin

    def run(self, steps: int) -> None:
        actions = [
            (self.append_plain, 6),
            (self.append_idempotent, 4),
            (self.append_transactional, 5),
            (self.end_transaction, 5),
            (self.append_with_gap, 2),
            (self.move_clock, 2),
            (self.move_high_watermark, 3),
            (self.twin.roll, 1),
            (self.new_epoch, 1),
            (self.delete_records, 1),
            (self.twin.delete_old_segments, 1),
            (self.truncate, 0.5),
            (self.reopen, 0.5),
            (self.clean, 4),
        ]
        weights = [weight for _, weight in actions]
        for _ in range(steps):
            self.random.choices(actions, weights)[0][0]()
            self.twin.assert_same_state()
        self.clean()

    def batch(self, *, keyless: bool = False, base_offset: int = 0, **fields: Any) -> bytes:
        builder = BatchBuilder(codec=self.random.choice(self.codecs), base_offset=base_offset, **fields)
        offset = base_offset
        for _ in range(self.random.choice([1, 1, 2, 5, 5 if keyless else 30])):
            key = b"k%d" % self.random.choice([self.random.randrange(5), self.random.randrange(60)])
            if keyless and self.random.random() < 0.3:
                key = None
            value = None if self.random.random() < 0.2 else self.random.randbytes(self.random.choice([0, 5, 100, 400]))
            headers = [("h", b"x"), ("größe", None)][: self.random.choice([0, 0, 0, 1, 2])]
            builder.append(max(self.timestamp(), -1), key, value, headers, offset=offset)
            offset += self.random.choice([1, 1, 3]) if keyless else 1
        return builder.build()

    def append_with_gap(self) -> None:
        """Append as a follower of a compacted leader: offsets with gaps, and records without keys, which a leader
        refuses.
        """
        start = self.twin.ours.log_end_offset + self.random.choice([0, 1, 50, 2**31 - 10])
        self.epoch = max(self.epoch, 0)
        data = self.batch(keyless=True, base_offset=start, leader_epoch=self.epoch)
        self.twin.append_as_follower(data)
        self.twin.ours.run_due(self.twin.now_ms)

    def delete_records(self) -> None:
        # At a batch's start: past the start of an open transaction, Kafka rounds the last stable offset to a batch.
        log = self.twin.ours
        starts = [header.base_offset for segment in log.segments for header in segment.headers()]
        allowed = [start for start in starts if log.log_start_offset <= start <= log.high_watermark]
        if allowed:
            self.twin.delete_records(self.random.choice(allowed))

    def clean(self) -> None:
        if self.random.random() < 0.7:
            self.twin.set_high_watermark(self.twin.ours.log_end_offset)
            self.twin.roll()
        if self.twin.assert_same_range():
            self.twin.clean(
                dedupe_buffer_bytes=24 * self.random.choice([3, 20, 100, 10_000]),
                load_factor=self.random.choice([0.9, 0.9, 0.5]),
                io_buffer_bytes=self.random.choice([2**19, 2000]),
            )


def run_script(log_oracle: LogOracle, tmp_path: Path, config: str, seed: int, steps: int) -> None:
    log_oracle.reset()
    twin = CompactedTwin(log_oracle, tmp_path, CONFIGS[config])
    try:
        CompactingScript(twin, seed, CODECS).run(steps)
    except KafkaGaveUp:
        return
    twin.shut_down()
    twin.assert_same_files()


@pytest.mark.parametrize(("config", "seed"), [(config, seed) for seed, config in enumerate(CONFIGS)])
def test_random_logs_are_compacted_to_the_same_files(
    log_oracle: LogOracle, tmp_path: Path, config: str, seed: int
) -> None:
    run_script(log_oracle, tmp_path, config, seed, steps=150)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_more_random_logs_are_compacted_to_the_same_files(
    log_oracle: LogOracle, tmp_path: Path, config: str, seed: int
) -> None:
    run_script(log_oracle, tmp_path, config, seed, steps=300)


def keyed(timestamp: int, *records: tuple[bytes | None, bytes | None], **fields: Any) -> bytes:
    builder = BatchBuilder(**fields)
    for key, value in records:
        builder.append(timestamp, key, value)
    return builder.build()


def test_a_range_without_remaining_records_keeps_its_last_batch_header(log_oracle: LogOracle, tmp_path: Path) -> None:
    twin = CompactedTwin(log_oracle, tmp_path, COMPACT)
    twin.append_as_follower(keyed(twin.now_ms, (b"a", b"1"), (b"b", b"1"), leader_epoch=0))
    twin.append_as_follower(keyed(twin.now_ms, (None, b"x"), (None, b"y"), base_offset=2, leader_epoch=0))
    twin.set_high_watermark(4)
    twin.roll()
    assert twin.clean().end_offset == 4
    headers = list(twin.ours.segments.first.headers())
    assert [(header.last_offset, header.record_count) for header in headers] == [(1, 2), (3, 0)]


def test_a_batch_larger_than_every_buffer_is_cleaned(log_oracle: LogOracle, tmp_path: Path) -> None:
    twin = CompactedTwin(log_oracle, tmp_path, {**COMPACT, "internal.segment.bytes": "1000000"})
    for number in range(3):
        values = [(b"%d" % key, bytes([number]) * 9000) for key in range(number, number + 30)]
        twin.append(keyed(twin.now_ms, *values))
    twin.set_high_watermark(90)
    twin.roll()
    twin.clean(io_buffer_bytes=600)
    assert sum(header.record_count for header in twin.ours.segments.first.headers()) == 32


def test_tombstones_and_markers_are_removed_after_their_delete_horizon(log_oracle: LogOracle, tmp_path: Path) -> None:
    twin = CompactedTwin(log_oracle, tmp_path, COMPACT)
    for number, key in enumerate([b"a", b"b"]):
        twin.append(
            keyed(twin.now_ms, (key, b"1"), producer_id=9, producer_epoch=0, base_sequence=number, transactional=True)
        )
        twin.append(bytes(end_marker(9, commit=True, timestamp=twin.now_ms)), origin="COORDINATOR")
    twin.append(keyed(twin.now_ms, (b"a", None)))
    left = []
    for number in range(4):
        twin.append(keyed(twin.now_ms, (b"z", b"%d" % number)))
        twin.set_high_watermark(twin.ours.log_end_offset)
        twin.roll()
        twin.assert_same_range()
        twin.clean()
        left.append([header.base_offset for segment in twin.ours.segments for header in segment.headers()])
        twin.advance_clock(30_001)
    # Offset 4 is the tombstone of key a: it removes offset 0 and is removed later. Offset 1 is the marker of offset 0's
    # transaction.
    assert left == [[1, 2, 3, 4, 5], [1, 2, 3, 6], [2, 3, 7], [2, 3, 8]]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_rewritten_as_v2_batches(
    log_oracle: LogOracle, tmp_path: Path, magic: int, codec: oracle_types.Codec
) -> None:
    """In the first round all are dirty. Later those below offset 12 count as clean, and tombstones expire by the file's
    date.
    """
    for timestamp_type in ["CreateTime", "LogAppendTime"] if magic else ["CreateTime"]:
        root = tmp_path / timestamp_type
        write_old_messages(log_oracle, root, magic, codec, timestamp_type)
        for clean_offset, modified in [(None, 1000), (12, 1000), (12, 1000 + 40)]:
            case = tmp_path / f"{timestamp_type}-{clean_offset}-{modified}"
            shutil.copytree(root, case)
            twin = CompactedTwin(log_oracle, case, COMPACT)
            twin.clean_offset = clean_offset
            for folder in (twin.kafka_folder, twin.our_folder):
                for path in folder.glob("*.log"):
                    os.utime(path, (1000, 1000) if path.name.startswith("0" * 20) else (modified, modified))
            twin.set_high_watermark(twin.ours.log_end_offset)
            twin.roll()
            twin.assert_same_range()
            twin.clean()
            assert all(header.magic == 2 for segment in twin.ours.segments for header in segment.headers())


def write_old_messages(log_oracle: LogOracle, root: Path, magic: int, codec: Any, timestamp_type: Any) -> None:
    """Write two segments from 0 and 12 with sets of three messages, in both folders."""
    for base in (0, 12):
        data = b""
        for offset in range(base, base + 12, 3):
            records = [
                OracleRecord(
                    key=None if offset + n == 7 else b"k%d" % ((offset + n) % 8),
                    value=None if (offset + n) % 5 == 0 else b"v%d" % (offset + n),
                    timestamp=START_MS + offset + n,
                )
                for n in range(3)
            ]
            data += log_oracle.build_batch(
                records,
                magic=magic,
                codec=codec,
                timestamp_type=timestamp_type,
                base_offset=offset,
                log_append_time=START_MS + 99 if timestamp_type == "LogAppendTime" else -1,
            )
        for owner in ("kafka", "ours"):
            folder = root / owner / "topic-0"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{base:020d}.log").write_bytes(data)
