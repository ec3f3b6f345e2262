"""Random compacted logs on disk: repeated keys, tombstones, transactions, all codecs, many segments."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tailrace.log.compaction.cleaner import CleanerSettings, clean_log
from tailrace.log.compaction.cleaner_checkpoint import CleanerCheckpoint
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker

TOPIC = "table"
NOW_MS = 1_700_000_000_000
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "1500",
    "index.interval.bytes": "200",
    "delete.retention.ms": "1000",
}


def opened(path: Path, settings: dict[str, str], now_ms: int) -> tuple[LogDirectory, PartitionLog]:
    """Return the directory, created or opened again, and its one log, with everything replicated."""
    config = parse_topic_config(settings)
    directory = LogDirectory(DiskFiles(), str(path), new_id=lambda: "0" * 32)
    directory.load(lambda topic: config, now_ms)
    partition = TopicPartition(TOPIC, 0)
    log = directory.logs.get(partition)
    if log is None:
        log = directory.create(partition, config, now_ms, TopicId.parse("AAAAAAAAQACAAAAAAAAAAQ"))
    log.advance_high_watermark(log.log_end_offset)
    return directory, log


def closed(directory: LogDirectory, now_ms: int) -> None:
    for log in directory.logs.values():
        log.run_due(now_ms + 10**9)
    directory.close(now_ms)


class RandomLog:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.settings = dict(SETTINGS)
        self.settings["internal.segment.bytes"] = self.chance.choice(["600", "1500", "6000"])
        self.keys = self.chance.choice([3, 30, 300])
        self.has_transactions = self.chance.random() < 0.7
        self._sequences: dict[int, int] = {}
        self._epoch = 0

    def grow(self, path: Path, batches: int, now_ms: int) -> None:
        """Append `count` batches, end open transactions (or not), and stop cleanly."""
        directory, log = opened(path, self.settings, now_ms)
        chance = self.chance
        open_ids: set[int] = set()
        for number in range(batches):
            producer = (
                chance.choice([-1, -1, 1, 2, 3]) if not self.has_transactions else chance.choice([-1, 1, 2, 3, 4])
            )
            is_transactional = producer >= 3 or (self.has_transactions and producer >= 1)
            log.append_as_leader(
                bytearray(self._batch(producer, is_transactional, now_ms + number)), leader_epoch=0, now_ms=now_ms
            )
            if is_transactional:
                open_ids.add(producer)
            for one in sorted(open_ids):
                if chance.random() < 0.25:
                    self._end(log, one, now_ms)
                    open_ids.discard(one)
            log.advance_high_watermark(log.log_end_offset)
            if chance.random() < 0.03:
                log.roll(now_ms)
        for one in sorted(open_ids):
            if chance.random() < 0.7:
                self._end(log, one, now_ms)
        if chance.random() < 0.5:
            log.roll(now_ms)
        log.advance_high_watermark(log.log_end_offset)
        closed(directory, now_ms)

    def _batch(self, producer: int, is_transactional: bool, timestamp: int) -> bytes:
        chance = self.chance
        sequence = self._sequences.get(producer, 0)
        builder = BatchBuilder(
            codec=chance.choice([Codec.NONE, Codec.NONE, *Codec]),
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence if producer >= 0 else -1,
            transactional=is_transactional,
        )
        count = chance.choice([1, 1, 2, 5, 12])
        for _ in range(count):
            value = None if chance.random() < 0.2 else chance.randbytes(chance.choice([0, 3, 40]))
            headers = [("h", b"x")] if chance.random() < 0.1 else []
            builder.append(timestamp - chance.choice([0, 0, 500]), b"k%d" % chance.randrange(self.keys), value, headers)
        self._sequences[producer] = sequence + count
        return builder.build()

    def _end(self, log: PartitionLog, producer: int, now_ms: int) -> None:
        kind = self.chance.choice([ControlType.COMMIT, ControlType.ABORT])
        marker = build_end_marker(
            EndTransactionMarker(kind, 0), timestamp=now_ms, producer_id=producer, producer_epoch=0
        )
        log.append_as_leader(bytearray(marker), leader_epoch=0, now_ms=now_ms, origin=Origin.COORDINATOR)


def clean_locally(path: Path, settings: dict[str, str], now_ms: int) -> None:
    """Run one round of the cleaner, as a broker does."""
    directory, log = opened(path, settings, now_ms)
    checkpoint = CleanerCheckpoint(DiskFiles(), str(path))
    dirty = find_dirty_range(log, checkpoint.read().get(log.partition), now_ms)
    if dirty.first_dirty_offset < dirty.first_uncleanable_offset:
        cleaned = clean_log(DiskFiles(), log, dirty, now_ms, CleanerSettings())
        checkpoint.update(log.partition, cleaned.end_offset, directory.logs.keys())
    closed(directory, now_ms)


def opened_and_closed(path: Path, settings: dict[str, str], now_ms: int) -> None:
    directory, _ = opened(path, settings, now_ms)
    closed(directory, now_ms)


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target
