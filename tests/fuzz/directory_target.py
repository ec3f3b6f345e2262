"""Directories: a log directory with damaged files → opened, read, appended to, closed, opened again.

An input is a tree of files. What must hold:

- loading a directory raises nothing: a partition that cannot be opened is reported, and the others are served;
- what is open can be read, or says that it is corrupt; it can be appended to; what was appended is there after a clean
  stop and a new start.
"""

from __future__ import annotations

from contextlib import suppress

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import CorruptBatch, split_batches
from tests.fuzz.limits import InvariantBroken
from tests.fuzz.tree_target import ROOT, TreeTarget
from tests.fuzz.trees import TREE_BYTES_MAX, read_tree
from tests.support.batches import batch
from tests.support.golden import golden, golden_names
from tests.support.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
CONFIG = TopicConfig(internal_segment_bytes=20_000, index_interval_bytes=100)
SOUND = TopicPartition("sound", 0)


def golden_trees() -> list[dict[str, bytes]]:
    """Return the small directories that Kafka left, after clean stops and crashes."""
    trees = []
    for name in golden_names():
        one = golden(name)
        tree = read_tree(one.path / "files")
        tree = {path: data for path, data in tree.items() if not path.startswith("__cluster_metadata")}
        if sum(map(len, tree.values())) <= TREE_BYTES_MAX:
            trees.append(tree)
    return trees


class DirectoryTarget(TreeTarget):
    def __init__(self) -> None:
        clean = {".kafka_cleanshutdown": b'{"version":1,"brokerEpoch":5}'}
        trees = golden_trees()
        super().__init__([*trees, *(tree | clean for tree in trees)])

    def open(self, files: MemoryFiles) -> None:
        ends = self._use(files, {})
        self._use(files, ends)

    def _use(self, files: MemoryFiles, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Open, use and close the directory; the log ends that it must have, and those it has."""
        directory = LogDirectory(files, ROOT, new_id=lambda: "0" * 32)
        directory.load(lambda topic: CONFIG, NOW_MS)
        for partition, end in ends.items():
            if partition not in directory.logs:
                raise InvariantBroken(f"{partition} cannot be opened after a clean stop")
            if directory.logs[partition].log_end_offset != end:
                raise InvariantBroken(f"{partition} ends at {directory.logs[partition].log_end_offset}, not {end}")
        if SOUND not in directory.logs:
            directory.create(SOUND, CONFIG, NOW_MS)
        for partition, log in list(directory.logs.items()):
            use_log(log, must_take=partition == SOUND)
        directory.run_due(NOW_MS + 10**9)
        directory.checkpoint({partition: log.high_watermark for partition, log in directory.logs.items()})
        ends = {partition: log.log_end_offset for partition, log in directory.logs.items()}
        directory.close(NOW_MS)
        return ends


def use_log(log: PartitionLog, *, must_take: bool) -> None:
    read_all(log)
    with suppress(KafkaError, CorruptBatch, CorruptIndex):
        log.delete_old_segments(NOW_MS)
    for timestamp in (-3, -2, -1, 0, NOW_MS, 2**62):
        with suppress(CorruptBatch, CorruptIndex):
            find_offset(log, timestamp)
    end = log.log_end_offset
    try:
        log.append_as_leader(bytearray(batch(b"more")), leader_epoch=2**31 - 1, now_ms=NOW_MS)
    except KafkaError:
        if must_take:
            raise
        return
    if log.log_end_offset != end + 1:
        raise InvariantBroken(f"{log.partition} went from {end} to {log.log_end_offset} by one record")
    log.advance_high_watermark(end + 1)
    try:
        found = log.read(end, 1_000_000, at_least_one=True)
    except CorruptBatch:
        if must_take:
            raise
        return  # it lies behind damage that nobody has cut
    if found.slice is None or b"more" not in found.slice.read():
        raise InvariantBroken(f"{log.partition}: what was appended at {end} is not there")


def read_all(log: PartitionLog) -> None:
    """Read like a consumer, up to the first damage, which raises an error."""
    offset = log.log_start_offset
    with suppress(CorruptBatch, CorruptIndex, KafkaError):
        while offset < log.log_end_offset:
            found = log.read(
                offset, 10_000, Isolation.READ_COMMITTED if offset % 2 else Isolation.LOG_END, at_least_one=True
            )
            if found.slice is None:
                return
            last = offset - 1
            for one in split_batches(found.slice.read()):
                last = max(last, one.last_offset)
            if last < offset:
                return
            offset = last + 1
