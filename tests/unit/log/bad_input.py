"""A small data directory to damage, and what must hold of it afterwards, whatever the damage.

Partition `damaged-0` has three segments with compressed batches, transactions and an idempotent producer; `sound-0`
lies beside it and must not notice anything.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from tailrace.log.directories.log_directory import LoadReport, LogDirectory
from tailrace.log.disk.file_names import CLEAN_SHUTDOWN
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch, split_batches
from tailrace.records.checks.validation import Origin
from tests.support.batches import batch, end_marker
from tests.support.memory_files import MemoryFiles, memory_files

ROOT = "/data"
NOW = 1_000_000
DAMAGED = TopicPartition("damaged", 0)
SOUND = TopicPartition("sound", 0)
CONFIG = TopicConfig(internal_segment_bytes=280, index_interval_bytes=60)


def value(number: int) -> bytes:
    return b"value-%d" % number


def make_directory(files: Files, *, clean: bool) -> None:
    """Write the directory; left by a clean stop, or by a crash with the last segment not flushed."""
    files.make_directory(ROOT)
    directory = LogDirectory(files, ROOT, new_id=lambda: "id")
    directory.load(lambda topic: CONFIG, NOW)
    logs = {name: directory.create(name, CONFIG, NOW, TopicId(uuid.UUID(int=7))) for name in (DAMAGED, SOUND)}
    for log in logs.values():
        fill(log)
    directory.run_due(NOW)
    directory.checkpoint({name: log.high_watermark for name, log in logs.items()})
    if clean:
        directory.close(NOW)
    else:
        directory.abandon()


def fill(log: PartitionLog) -> None:
    for number in range(2):
        data = batch(value(number), timestamp=NOW + number, producer_id=5, sequence=number, codec=Codec.NONE)
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW)
    log.append_as_leader(batch(value(2), producer_id=6, sequence=0, transactional=True), leader_epoch=0, now_ms=NOW)
    log.append_as_leader(end_marker(6, commit=False), leader_epoch=1, now_ms=NOW, origin=Origin.COORDINATOR)
    log.append_as_leader(batch(value(4), value(5), codec=Codec.GZIP), leader_epoch=1, now_ms=NOW)
    log.append_as_leader(batch(value(6), producer_id=5, sequence=2), leader_epoch=1, now_ms=NOW)
    log.append_as_leader(batch(value(7)), leader_epoch=1, now_ms=NOW)
    log.append_as_leader(batch(value(8)), leader_epoch=2, now_ms=NOW)


class Sample(NamedTuple):
    """A directory as it was written, before it is damaged."""

    tree: dict[str, bytes]
    batches: dict[int, bytes]  # of either partition, by base offset
    clean: bool

    def names(self, part: str = "") -> list[str]:
        return [name for name in self.tree if part in name]


def sample(*, clean: bool) -> Sample:
    files = MemoryFiles()
    make_directory(files, clean=clean)
    tree = files.tree(ROOT)
    assert (CLEAN_SHUTDOWN in tree) == clean
    logs = [data for name, data in tree.items() if name.startswith("sound-0/") and name.endswith(".log")]
    assert len(logs) == 3
    return Sample(tree, {one.base_offset: bytes(one.view) for data in logs for one in split_batches(data)}, clean)


def load(files: Files) -> tuple[LogDirectory, LoadReport]:
    directory = LogDirectory(files, ROOT, new_id=lambda: "id")
    return directory, directory.load(lambda topic: CONFIG, NOW)


def load_tree(tree: dict[str, bytes]) -> tuple[MemoryFiles, LogDirectory, LoadReport]:
    files = memory_files(tree, ROOT)
    return files, *load(files)


class Reading(NamedTuple):
    """The readable part of a log: good batches by base offset, and the errors of the others."""

    good: dict[int, bytes]
    complaints: list[str]


def read_all(log: PartitionLog) -> Reading:
    """Read as a consumer does, batch by batch; after an error continue with the next segment."""
    good: dict[int, bytes] = {}
    complaints: list[str] = []
    starts = [segment.base_offset for segment in log.segments]
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            found = log.read(offset, 1, at_least_one=True)
            if found.slice is None:
                break
            one = RecordBatch(memoryview(found.slice.read()))
            try:
                one.check()
                good[one.base_offset] = bytes(one.view)
                offset = max(one.next_offset, offset + 1)
            except CorruptBatch as error:
                complaints.append(str(error.at(found.slice.file.path, found.slice.position)))
                offset += 1
        except CorruptBatch as error:
            complaints.append(str(error))
            offset = min((start for start in starts if start > offset), default=log.log_end_offset)
    return Reading(good, complaints)


def check_sound(directory: LogDirectory, sample: Sample) -> None:
    """Check that the partition beside the damaged one is whole and can be appended to."""
    log = directory.logs[SOUND]
    assert read_all(log) == Reading(sample.batches, [])
    log.append_as_leader(batch(b"more"), leader_epoch=3, now_ms=NOW)
    assert len(read_all(log).good) == len(sample.batches) + 1
