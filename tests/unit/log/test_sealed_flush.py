"""Sealed segments are synced beside the log; until that is done, recovery starts where it did before."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.sealed_flush import SEGMENTS_AT_ONCE, SealedFlush
from tailrace.log.directories.serial_work import RetriedWork
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.waiting.chore import Chore, run_now
from tests.support.batches import batch
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.recording_files import RecordingFiles, Sync

NOW_MS = 1_000_000
CONFIG = TopicConfig(internal_segment_bytes=200)
ORDERS = TopicPartition("orders", 0)


class Bench:
    """A directory with one log, whose flushes wait until they are called for."""

    def __init__(self, files: MemoryFiles | FaultyFiles) -> None:
        self.waiting: list[RetriedWork] = []
        self.errors: list[OSError] = []
        files.make_directory("/data")
        self.directory = LogDirectory(files, "/data", new_id=lambda: "id")
        self.directory.load(lambda topic: CONFIG, NOW_MS)
        self.directory.run_work_with(self._submit, self.errors.append)
        self.log: PartitionLog = self.directory.logs.get(ORDERS) or self.directory.create(ORDERS, CONFIG, NOW_MS)

    def _submit(self, work: Chore) -> None:
        if isinstance(work, RetriedWork) and isinstance(work.work, SealedFlush):
            self.waiting.append(work)
        else:
            run_now(work, NOW_MS)

    def append(self, *values: bytes) -> None:
        for value in values:
            self.log.append_as_leader(batch(value), leader_epoch=0, now_ms=NOW_MS)
        self.directory.run_due(NOW_MS)

    def finish(self, flush: RetriedWork) -> None:
        flush.run()
        flush.apply(None, NOW_MS)


def test_the_recovery_point_moves_when_the_sync_is_done() -> None:
    bench = Bench(MemoryFiles())
    bench.append(b"one", b"two", b"three", b"four")
    (flush,) = bench.waiting
    assert bench.log.recovery_point == 0
    flush.run()
    assert bench.log.recovery_point == 0
    flush.apply(None, NOW_MS)
    assert bench.log.recovery_point == bench.log.segments.active.base_offset > 0


def test_rolls_during_a_flush_are_flushed_after_it() -> None:
    bench = Bench(MemoryFiles())
    bench.append(b"one", b"two", b"three", b"four")
    bench.append(b"five", b"six", b"seven", b"eight")
    (first,) = bench.waiting
    bench.finish(first)
    _, second = bench.waiting
    bench.finish(second)
    assert len(bench.waiting) == 2
    assert bench.log.recovery_point == bench.log.segments.active.base_offset


def test_each_file_of_many_segments_is_synced_once() -> None:
    files = RecordingFiles()
    bench = Bench(files)
    bench.append(*(b"%d" % number for number in range(6 * SEGMENTS_AT_ONCE)))
    segments = len(bench.log.segments)
    assert segments > 2 * SEGMENTS_AT_ONCE
    before = len(files.trace)
    for flush in bench.waiting:  # a flush that ends adds the next one
        bench.finish(flush)
    assert bench.log.recovery_point == bench.log.segments.active.base_offset
    assert sum(isinstance(one, Sync) for one in files.trace[before:]) < 6 * segments


def test_a_flush_overtaken_by_a_truncation_does_not_move_the_recovery_point() -> None:
    bench = Bench(MemoryFiles())
    bench.append(b"one", b"two", b"three", b"four")
    (flush,) = bench.waiting
    flush.run()
    bench.log.truncate_to(1, NOW_MS)
    bench.append(b"other two", b"other three", b"other four")
    flush.apply(None, NOW_MS)
    assert bench.log.recovery_point <= 1
    _, again = bench.waiting
    bench.finish(again)
    assert bench.log.recovery_point == bench.log.segments.active.base_offset


def test_a_flush_of_a_deleted_log_does_not_fail() -> None:
    bench = Bench(MemoryFiles())
    bench.append(b"one", b"two", b"three", b"four")
    bench.directory.delete(ORDERS, NOW_MS)
    bench.directory.run_due(NOW_MS + 10**9)
    bench.finish(bench.waiting[0])
    assert bench.errors == []


def test_a_failed_sync_is_reported_as_a_disk_failure() -> None:
    files = FaultyFiles(MemoryFiles())
    bench = Bench(files)
    bench.append(b"one", b"two", b"three", b"four")
    files.fail("sync", errno.EIO)
    (flush,) = bench.waiting
    with pytest.raises(OSError, match="Input/output") as failure:
        flush.run()
    flush.failed(failure.value, NOW_MS)
    assert bench.errors == [failure.value]
    assert bench.log.recovery_point == 0


def test_a_clean_stop_with_waiting_flushes_is_durable() -> None:
    files = MemoryFiles()
    bench = Bench(files)
    bench.append(*(b"value %d" % number for number in range(10)))
    bench.directory.close(NOW_MS)
    again = Bench(memory_files(files.tree()))
    assert again.log.log_end_offset == 10


def test_a_sync_of_the_active_segment_without_a_waiting_request_runs_on_another_thread() -> None:
    files = RecordingFiles()
    directory = LogDirectory(files, "/data", new_id=lambda: "0" * 32)
    work: list[Any] = []
    directory.load(lambda topic: TopicConfig(), NOW_MS)
    directory.run_work_with(work.append, pytest.fail)
    log = directory.create(ORDERS, TopicConfig(flush_ms=1_000), NOW_MS)
    for _ in range(4):
        log.append_as_leader(batch(b"value"), leader_epoch=0, now_ms=NOW_MS)
    log.epochs.write()
    log.advance_high_watermark(4)
    before = len(files.trace)
    assert log.flush_if_due(NOW_MS + 2_000)
    assert not log.flush_if_due(NOW_MS + 2_001)  # it is under way
    assert log.delete_records(2, NOW_MS + 2_002)
    assert (log.recovery_point, log.log_start_offset) == (0, 2)
    assert not any(isinstance(operation, Sync) for operation in files.trace[before:])
    for one in work:
        one.apply(one.run(), NOW_MS)
    assert any(isinstance(operation, Sync) for operation in files.trace[before:])
    assert log.recovery_point == 4


def test_a_sync_overtaken_by_a_truncation_does_not_move_the_recovery_point() -> None:
    files = RecordingFiles()
    directory = LogDirectory(files, "/data", new_id=lambda: "0" * 32)
    work: list[Any] = []
    directory.load(lambda topic: TopicConfig(), NOW_MS)
    directory.run_work_with(work.append, pytest.fail)
    log = directory.create(ORDERS, TopicConfig(flush_ms=1_000), NOW_MS)
    for _ in range(4):
        log.append_as_leader(batch(b"value"), leader_epoch=0, now_ms=NOW_MS)
    log.epochs.write()
    log.flush_if_due(NOW_MS + 2_000)
    work[0].run()
    log.truncate_to(1, NOW_MS)
    for _ in range(5):
        log.append_as_leader(batch(b"other"), leader_epoch=1, now_ms=NOW_MS)
    work[0].apply(None, NOW_MS)
    assert log.recovery_point == 0
