"""Short lives of a log directory, each with the changes that a crash must not tear apart.

Segments of a few hundred bytes hold three or four batches, so that every life rolls; files marked as deleted go after a
second. Batches of equal size are on purpose: what was cut off and written again lies at the same bytes.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from tailrace.log.directories.sealed_flush import SealedFlush
from tailrace.log.directories.serial_work import RetriedWork
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec
from tailrace.records.checks.validation import Origin
from tailrace.waiting.chore import Chore, run_now
from tests.crash.driven_log import NOW, ROOT, Driver, Expectation, Outcome
from tests.support.batches import StoredBatch, batch, end_marker
from tests.support.memory_files import MemoryFiles

DELAY_MS = 1_000


def small_segments(**settings: object) -> TopicConfig:
    defaults: dict[str, object] = {
        "internal_segment_bytes": 310,
        "index_interval_bytes": 80,
        "file_delete_delay_ms": DELAY_MS,
    }
    return TopicConfig(**(defaults | settings))  # type: ignore[arg-type]


def value(number: int, mark: str = "v") -> bytes:
    return f"{mark}{number:015d}".encode()


def fill(driver: Driver, partition: TopicPartition, count: int, *, mark: str = "v", leader_epoch: int = 0) -> None:
    """Append `count` batches of one record each, all of the same size."""
    for number in range(count):
        data = batch((b"key", value(number, mark)), timestamp=NOW - 500 + 7 * number % 50)
        driver.append(partition, data, leader_epoch=leader_epoch)


def append_and_flush() -> Driver:
    driver = Driver(small_segments(internal_segment_bytes=4_000))
    partition = driver.create()
    fill(driver, partition, 2)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.append(partition, batch(value(2), value(3), value(4), timestamp=(NOW, NOW + 9, NOW + 3)))
    driver.append(partition, batch(value(5), value(6), codec=Codec.ZSTD, timestamp=NOW))
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    fill(driver, partition, 2, mark="w")
    return driver


def roll() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    fill(driver, partition, 5)
    driver.run_due()
    fill(driver, partition, 4, mark="w")
    driver.checkpoint()
    fill(driver, partition, 2, mark="x")
    driver.run_due()
    driver.checkpoint()
    return driver


def roll_without_flush() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    fill(driver, partition, 9)
    return driver


def roll_with_late_flushes() -> Driver:
    """Sync sealed segments on another thread, after more appends and a checkpoint."""
    driver = Driver(small_segments())
    waiting: list[Any] = []

    def submit(work: Chore) -> None:
        if isinstance(work, RetriedWork) and isinstance(work.work, SealedFlush):
            waiting.append(work)
        else:
            run_now(work, driver.now_ms)

    driver.directory.run_work_with(submit, lambda error: None)
    partition = driver.create()
    for mark in "vwx":
        fill(driver, partition, 5, mark=mark)
        driver.run_due()
        driver.checkpoint()
    assert len(waiting) == 1  # a log has one flush at a time
    driver.change(partition, lambda log: waiting[0].run())
    fill(driver, partition, 5, mark="y")
    driver.change(partition, lambda log: waiting.pop().apply(None, driver.now_ms))
    driver.checkpoint()
    assert len(waiting) == 1  # of the segments that were sealed since then
    while waiting:
        flush = waiting.pop()
        driver.change(partition, lambda log, flush=flush: flush.run())
        driver.change(partition, lambda log, flush=flush: flush.apply(None, driver.now_ms))
    driver.checkpoint()
    fill(driver, partition, 1, mark="z")
    return driver


def epochs_written_late() -> Driver:
    """Change epochs and flush records. The file with the epochs is written later, or not at all."""
    driver = Driver(small_segments())
    waiting: list[Chore] = []
    driver.directory.run_work_with(waiting.append, lambda error: None)
    partition = driver.create()

    def do_first() -> None:
        work = waiting.pop(0)
        results: list[Any] = []
        driver.change(partition, lambda log: results.append(work.run()))
        driver.change(partition, lambda log: work.apply(results[0], driver.now_ms))

    fill(driver, partition, 3)
    driver.run_due()
    fill(driver, partition, 2, mark="w", leader_epoch=1)
    while waiting:
        do_first()
    driver.truncate(partition, 4)
    fill(driver, partition, 2, mark="x", leader_epoch=3)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.change(partition, lambda log: log.roll(driver.now_ms))
    fill(driver, partition, 1, mark="y", leader_epoch=4)
    driver.run_due()
    while waiting:
        do_first()
    driver.checkpoint()
    return driver


def segments_deleted_with_late_syncs() -> Driver:
    """Delete segments. The folder is synced on another thread, after checkpoints and other changes."""
    driver = Driver(small_segments(retention_bytes=400))
    waiting: list[Chore] = []
    driver.directory.run_work_with(waiting.append, lambda error: None)
    partition = driver.create()

    def do_all() -> None:
        while waiting:
            sync, results = waiting.pop(0), list[Any]()
            driver.change(partition, lambda log, sync=sync, results=results: results.append(sync.run()))
            driver.change(partition, lambda log, sync=sync, results=results: sync.apply(results[0], driver.now_ms))

    fill(driver, partition, 14)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    for _ in range(6):
        driver.change(partition, lambda log: log.delete_old_segments(driver.now_ms, 1))
        driver.checkpoint()
        do_all()
    fill(driver, partition, 5, mark="w")
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(partition, lambda log: log.delete_records(log.log_end_offset - 1, driver.now_ms))
    driver.checkpoint()
    for _ in range(3):
        driver.change(partition, lambda log: log.delete_old_segments(driver.now_ms, 1))
        driver.checkpoint()
        fill(driver, partition, 2, mark="x")
        do_all()
    driver.change(partition, lambda log: log.delete_old_segments(driver.now_ms, 1))
    driver.truncate_fully(partition, 5)
    do_all()
    fill(driver, partition, 1, mark="y")
    driver.checkpoint()
    return driver


def checkpoints_written_late() -> Driver:
    """Write checkpoints of a log that is meanwhile truncated, deleted, and created again."""
    driver = Driver(small_segments())
    waiting: list[Chore] = []
    driver.directory.run_work_with(waiting.append, lambda error: None)
    partition = driver.create("t", TopicId(uuid.UUID(int=5)))

    def work() -> None:
        while waiting:
            first = waiting.pop(0)
            first.apply(first.run(), driver.now_ms)

    def delete() -> None:
        driver.directory.delete(partition, driver.now_ms)
        work()
        del driver.outcomes[partition]

    fill(driver, partition, 4)
    driver.run_due()
    driver.run(work)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.run(partial(driver.directory.checkpoint_soon, driver.now_ms))
    driver.truncate(partition, 1)
    fill(driver, partition, 4, mark="w", leader_epoch=1)
    driver.run(work)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(partition, lambda log: log.delete_records(2, driver.now_ms))
    driver.run(partial(driver.directory.checkpoint_soon, driver.now_ms))
    driver.run(work)
    driver.run(delete)
    driver.create_all({"t": TopicId(uuid.UUID(int=6))}, leader_epoch=2)
    return driver


def roll_after_flush(*, preallocate: bool = False) -> Driver:
    """Roll a segment that is completely flushed: the recovery point is where the next segment starts."""
    driver = Driver(small_segments(preallocate=preallocate))
    partition = driver.create()
    producers = _Producers(driver, partition)
    producers.send(1, transactional=True)
    producers.end(1, commit=False)
    fill(driver, partition, 1)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    fill(driver, partition, 1, mark="w")
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.change(partition, lambda log: log.roll(driver.now_ms))
    fill(driver, partition, 1, mark="x")
    return driver


def roll_preallocated_after_flush() -> Driver:
    return roll_after_flush(preallocate=True)


def roll_preallocated() -> Driver:
    driver = Driver(small_segments(preallocate=True))
    partition = driver.create()
    fill(driver, partition, 4)
    driver.run_due()
    fill(driver, partition, 3, mark="w")
    driver.close()
    return driver


def flush_messages() -> Driver:
    driver = Driver(small_segments(flush_messages=2))
    partition = driver.create()
    fill(driver, partition, 7)
    driver.checkpoint()
    fill(driver, partition, 1, mark="w")
    return driver


def truncate_in_a_segment() -> Driver:
    driver = Driver(small_segments(internal_segment_bytes=4_000))
    partition = driver.create()
    fill(driver, partition, 4)
    driver.truncate(partition, 1)
    fill(driver, partition, 3, mark="w", leader_epoch=1)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    fill(driver, partition, 1, mark="x", leader_epoch=1)
    return driver


def truncate_segments() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    fill(driver, partition, 11)
    driver.run_due()
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.truncate(partition, 4)
    fill(driver, partition, 5, mark="w", leader_epoch=2)
    driver.run_due()
    driver.checkpoint()
    fill(driver, partition, 1, mark="x", leader_epoch=2)
    driver.run_due(DELAY_MS)
    return driver


def truncate_unflushed_segments() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    fill(driver, partition, 8)
    driver.truncate(partition, 2)
    fill(driver, partition, 4, mark="w", leader_epoch=1)
    return driver


def truncate_fully() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    fill(driver, partition, 8)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.truncate_fully(partition, 20)
    fill(driver, partition, 3, mark="w", leader_epoch=3)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(partition, lambda log: log.delete_records(22, driver.now_ms))
    driver.checkpoint()
    driver.truncate_fully(partition, 5)
    fill(driver, partition, 2, mark="x", leader_epoch=4)
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.run_due(DELAY_MS)
    return driver


def delete_records() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    fill(driver, partition, 4)
    driver.run_due()
    driver.checkpoint()
    fill(driver, partition, 5, mark="w", leader_epoch=1)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(partition, lambda log: log.delete_records(7, driver.now_ms))
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.change(partition, lambda log: log.delete_old_segments(driver.now_ms))
    fill(driver, partition, 2, mark="x", leader_epoch=1)
    driver.run_due(DELAY_MS)
    driver.checkpoint()
    return driver


def retention() -> Driver:
    driver = Driver(small_segments(retention_bytes=400))
    partition = driver.create()
    fill(driver, partition, 14)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(partition, lambda log: log.delete_old_segments(driver.now_ms))
    fill(driver, partition, 1, mark="w")
    driver.run_due()
    driver.checkpoint()
    driver.run_due(DELAY_MS)
    return driver


def retention_of_everything() -> Driver:
    driver = Driver(small_segments(retention_ms=100))
    partition = driver.create()
    fill(driver, partition, 5)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(partition, lambda log: log.delete_old_segments(driver.now_ms + 10_000))
    fill(driver, partition, 2, mark="w")
    driver.run_due(DELAY_MS)
    return driver


class _Producers:
    """Producers that count their sequences."""

    def __init__(self, driver: Driver, partition: TopicPartition) -> None:
        self.driver = driver
        self.partition = partition
        self._next: dict[int, int] = {}

    def send(self, producer_id: int, count: int = 1, *, transactional: bool = False, leader_epoch: int = 0) -> None:
        sequence = self._next.get(producer_id, 0)
        self._next[producer_id] = sequence + count
        data = batch(
            *[(b"p%d" % producer_id, value(sequence + number)) for number in range(count)],
            producer_id=producer_id,
            sequence=sequence,
            transactional=transactional,
            timestamp=NOW - producer_id,
        )
        self.driver.append(self.partition, data, leader_epoch=leader_epoch)

    def end(self, producer_id: int, *, commit: bool) -> None:
        marker = end_marker(producer_id, commit=commit, timestamp=NOW)
        self.driver.append(self.partition, marker, origin=Origin.COORDINATOR)


def transactions() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    producers = _Producers(driver, partition)
    producers.send(1)
    producers.send(2, transactional=True)
    producers.send(3, 2, transactional=True)
    producers.end(2, commit=False)
    driver.run_due()
    producers.send(1)
    producers.end(3, commit=False)
    driver.checkpoint()
    producers.send(2, transactional=True)
    producers.end(2, commit=True)
    driver.run_due()
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    producers.send(3, transactional=True)
    driver.close()
    return driver


def truncated_transactions() -> Driver:
    """Transactions are truncated, and other producers write at the same offsets."""
    driver = Driver(small_segments())
    partition = driver.create()
    producers = _Producers(driver, partition)
    producers.send(1)
    for _ in range(3):
        producers.send(2, transactional=True)
    producers.end(2, commit=False)
    producers.send(1)
    driver.run_due()
    driver.change(partition, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.truncate(partition, 2)
    producers = _Producers(driver, partition)
    for _ in range(4):
        producers.send(7, transactional=True)
    driver.run_due()
    driver.checkpoint()
    producers.end(7, commit=False)
    driver.close()
    return driver


def clean_stops() -> Driver:
    driver = Driver(small_segments())
    partition = driver.create()
    producers = _Producers(driver, partition)
    fill(driver, partition, 2)
    producers.send(4)
    driver.close()
    driver.reopen()
    fill(driver, partition, 2, mark="w", leader_epoch=1)
    producers.send(4, leader_epoch=1)
    driver.run_due()
    driver.close()
    driver.reopen()
    driver.close()
    return driver


def topics() -> Driver:
    driver = Driver(small_segments())
    first = driver.create("first", TopicId(uuid.UUID(int=5)))
    fill(driver, first, 3)
    second = driver.create("second", TopicId(uuid.UUID(int=6)))
    fill(driver, second, 2)
    driver.checkpoint()
    driver.delete(first)
    fill(driver, second, 1)
    driver.run_due(DELAY_MS)
    driver.create("first", TopicId(uuid.UUID(int=7)))
    return driver


def many_topics() -> Driver:
    """Create several logs together, one of them in the folder of a deleted one."""
    driver = Driver(small_segments())
    old = driver.create("first", TopicId(uuid.UUID(int=5)))
    fill(driver, old, 3)
    driver.change(old, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.change(old, lambda log: log.delete_records(2, driver.now_ms))
    driver.change(old, lambda log: log.flush(driver.now_ms))
    driver.checkpoint()
    driver.delete(old)
    driver.create_all({"first": TopicId(uuid.UUID(int=6)), "second": TopicId(uuid.UUID(int=7))}, leader_epoch=2)
    fill(driver, old, 1, mark="w", leader_epoch=2)
    return driver


def follower_with_gaps() -> Driver:
    """Append a follower's batches of a compacted leader: there are gaps between offsets, also at a roll."""
    driver = Driver(small_segments(cleanup_policy=frozenset({"compact"})))
    partition = driver.create()
    for number, offset in enumerate((3, 4, 9, 15, 16, 30, 31)):
        data = batch((b"k", value(number)), base_offset=offset, leader_epoch=number // 3, timestamp=NOW)
        driver.append_as_follower(partition, data, leader_epoch=5)
    driver.run_due()
    driver.checkpoint()
    driver.append_as_follower(partition, batch((b"k", value(9)), base_offset=40, leader_epoch=4), leader_epoch=5)
    return driver


def compaction() -> Driver:
    """Compact a log: old values are removed, groups of segments are merged, and a whole segment becomes empty."""
    driver = Driver(small_segments(cleanup_policy=frozenset({"compact"}), delete_retention_ms=50))
    partition = driver.create()

    def put(*keys: str, tombstone: bool = False) -> None:
        for number, key in enumerate(keys):
            content = None if tombstone else value(number)
            driver.append(partition, batch((key.encode(), content), timestamp=driver.now_ms))

    def compact() -> None:
        driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
        driver.compact(partition)

    put("a", "b", "a", "c", "c", "c", "a")
    put("b", tombstone=True)
    put("c", "d", "d")
    compact()
    driver.run_due(DELAY_MS)
    put("a", "e", "e", "d")
    driver.checkpoint()
    compact()
    put("f")
    return driver


def compaction_of_transactions() -> Driver:
    driver = Driver(small_segments(cleanup_policy=frozenset({"compact"}), delete_retention_ms=50))
    partition = driver.create()
    producers = _Producers(driver, partition)
    producers.send(1)
    producers.send(2, transactional=True)
    producers.send(3, transactional=True)
    producers.end(2, commit=False)
    producers.end(3, commit=True)
    producers.send(1)
    producers.send(2, transactional=True)
    producers.end(2, commit=False)
    producers.send(1, 2)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.compact(partition)
    producers.send(1)
    driver.run_due(DELAY_MS)
    driver.compact(partition)
    driver.close()
    return driver


def proposed_compaction() -> Driver:
    """Replace a log by one that was compacted elsewhere."""
    driver = Driver(small_segments(cleanup_policy=frozenset({"compact"}), delete_retention_ms=50))
    partition = driver.create()
    producers = _Producers(driver, partition)
    producers.send(2, transactional=True)
    producers.end(2, commit=False)
    for number, key in enumerate("aba"):
        driver.append(partition, batch((key.encode(), value(number)), timestamp=driver.now_ms))
    driver.append(partition, batch((b"b", None), timestamp=driver.now_ms))
    fill(driver, partition, 1)
    driver.change(partition, lambda log: log.advance_high_watermark(log.log_end_offset))
    driver.propose(partition)
    driver.take_proposal(partition)
    driver.run_due(DELAY_MS)
    return driver


def split() -> Driver:
    """Open a segment whose offsets overflow, as old versions wrote it, so that it is split."""
    offsets = (0, 1, 2**31 + 5, 2**31 + 6, 2**32 + 9)
    stored = [
        StoredBatch(offset, offset + 1, bytes(batch((b"k", value(offset)), base_offset=offset, leader_epoch=0)))
        for offset in offsets
    ]
    files = MemoryFiles()
    files.make_directory(f"{ROOT}/t-0")
    files.write(f"{ROOT}/t-0/{0:020d}.log", b"".join(batch.data for batch in stored), sync=True)
    config = small_segments(internal_segment_bytes=4_000, cleanup_policy=frozenset({"compact"}))
    outcome = Outcome(tuple(stored), stored[-1].next_offset, stored[-1].next_offset)
    driver = Driver(config, files, Expectation({TopicPartition("t", 0): (outcome,)}))
    fill(driver, TopicPartition("t", 0), 1)
    return driver


SCENARIOS = [
    append_and_flush,
    roll,
    roll_without_flush,
    roll_with_late_flushes,
    roll_after_flush,
    roll_preallocated,
    roll_preallocated_after_flush,
    flush_messages,
    truncate_in_a_segment,
    truncate_segments,
    truncate_unflushed_segments,
    truncate_fully,
    delete_records,
    retention,
    retention_of_everything,
    transactions,
    truncated_transactions,
    clean_stops,
    topics,
    follower_with_gaps,
    compaction,
    compaction_of_transactions,
    proposed_compaction,
    split,
]

# What is done beside the thread that changes a log.
LATE_SCENARIOS = [epochs_written_late, segments_deleted_with_late_syncs, checkpoints_written_late, many_topics]
