"""L13: which part of a log is dirty, may be cleaned, and is due."""

from __future__ import annotations

from tailrace.log.compaction.cleaner_range import DirtyRange, find_dirty_range
from tailrace.log.partition_log import PartitionLog
from tests.support.batches import batch
from tests.support.small_logs import NOW_MS, append, end_transaction, open_small, replicate

COMPACT = {"cleanup.policy": "compact"}


def compacted(settings: dict[str, str] | None = None, *timestamps: int) -> PartitionLog:
    """Return a log with segments of one batch of two records each, and an empty active segment."""
    log = open_small(settings={**COMPACT, **(settings or {})})
    for timestamp in timestamps or (NOW_MS, NOW_MS, NOW_MS):
        data = batch((b"k", b"1"), (b"l", b"1"), timestamp=timestamp)
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
        log.roll(NOW_MS)
    replicate(log)
    return log


def bounds(dirty: DirtyRange) -> tuple[int, int]:
    return dirty.first_dirty_offset, dirty.first_uncleanable_offset


def test_without_a_checkpoint_all_segments_but_the_active_one_are_dirty() -> None:
    log = compacted()
    dirty = find_dirty_range(log, None, NOW_MS)
    assert bounds(dirty) == (0, 6)
    assert (dirty.clean_bytes, dirty.cleanable_bytes, dirty.cleanable_ratio) == (0, log.size, 1.0)
    assert not dirty.checkpoint_was_invalid


def test_the_dirty_range_starts_at_the_cleaner_checkpoint() -> None:
    dirty = find_dirty_range(compacted(), 4, NOW_MS)
    assert bounds(dirty) == (4, 6)
    assert dirty.clean_bytes == 2 * dirty.cleanable_bytes


def test_a_checkpoint_outside_the_log_is_invalid() -> None:
    log = compacted()
    assert bounds(find_dirty_range(log, 7, NOW_MS)) == (0, 6)
    assert find_dirty_range(log, 7, NOW_MS).checkpoint_was_invalid
    log.delete_records(3, NOW_MS)
    assert bounds(find_dirty_range(log, 2, NOW_MS)) == (3, 6)
    assert find_dirty_range(log, 2, NOW_MS).checkpoint_was_invalid
    assert not find_dirty_range(log, 6, NOW_MS).checkpoint_was_invalid


def test_the_segment_of_the_high_watermark_and_later_ones_are_not_cleaned() -> None:
    log = open_small(settings=COMPACT)
    for _ in range(3):
        append(log, (b"k", b"1"), (b"l", b"1"))  # type: ignore[arg-type]
        log.roll(NOW_MS)
    replicate(log, 3)
    assert bounds(find_dirty_range(log, None, NOW_MS)) == (0, 2)
    replicate(log, 4)
    assert bounds(find_dirty_range(log, None, NOW_MS)) == (0, 4)


def test_segments_from_an_open_transaction_on_are_not_cleaned() -> None:
    log = compacted()
    data = batch((b"k", b"1"), timestamp=NOW_MS, producer_id=1, sequence=0, transactional=True)
    log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    replicate(log)
    assert bounds(find_dirty_range(log, None, NOW_MS)) == (0, 6)
    end_transaction(log, 1, commit=True)
    log.roll(NOW_MS)
    replicate(log)
    assert bounds(find_dirty_range(log, None, NOW_MS)) == (0, 8)


def test_segments_younger_than_the_minimum_lag_are_not_cleaned() -> None:
    log = compacted({"min.compaction.lag.ms": "100"}, NOW_MS - 300, NOW_MS - 50, NOW_MS - 200)
    assert bounds(find_dirty_range(log, None, NOW_MS)) == (0, 2)
    assert bounds(find_dirty_range(log, None, NOW_MS + 50)) == (0, 6)
    assert bounds(find_dirty_range(log, 6, NOW_MS)) == (6, 6)


def test_a_log_is_due_when_enough_of_it_is_dirty() -> None:
    log = compacted()
    assert find_dirty_range(log, 2, NOW_MS).is_due(0.5)
    assert not find_dirty_range(log, 4, NOW_MS).is_due(0.5)
    assert find_dirty_range(log, 4, NOW_MS).is_due(0.3)
    assert not find_dirty_range(log, 6, NOW_MS).is_due(0.0)


def test_a_log_is_due_when_a_dirty_segment_has_waited_longer_than_the_maximum_lag() -> None:
    log = compacted({"max.compaction.lag.ms": "1000"}, NOW_MS - 5000, NOW_MS - 400)
    late = find_dirty_range(log, 0, NOW_MS)
    assert (late.compaction_delay_ms, late.is_due(1.0)) == (4000, True)
    assert find_dirty_range(log, 2, NOW_MS).compaction_delay_ms == 0
    assert find_dirty_range(log, 2, NOW_MS + 700).compaction_delay_ms == 100


def test_an_empty_log_has_nothing_to_clean() -> None:
    dirty = find_dirty_range(open_small(settings=COMPACT), None, NOW_MS)
    assert (bounds(dirty), dirty.cleanable_ratio, dirty.is_due(0.0)) == ((0, 0), 0.0, False)
