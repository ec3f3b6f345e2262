"""L13: a log is compacted segment group by segment group, and a failure at any step leaves it unchanged."""

from __future__ import annotations

import errno
import random

import pytest

from tailrace.log.compaction.cleaner import (
    Cleaned,
    CleanerSettings,
    Cleaning,
    CleaningAborted,
    clean_log,
)
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.compaction.segment_groups import group_segments
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.record import iter_records
from tests.support.batches import batch, stored_batches
from tests.support.faulty_files import FaultyFiles
from tests.support.small_logs import FOLDER, NOW_MS, end_transaction, new_files, open_small, replicate

SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "1000",
    "index.interval.bytes": "150",
    "delete.retention.ms": "1000",
}

Contents = list[tuple[int, bytes | None, bytes | None]]


def filled(files: Files, settings: dict[str, str] | None = None, *, records: int = 120, keys: int = 40) -> PartitionLog:
    """Return a log with batches of three records, rolled by size and all replicated. Its last segment is empty."""
    chance = random.Random(1)
    log = open_small(files, {**SETTINGS, **(settings or {})})
    for start in range(0, records, 3):
        rows = [(b"k%02d" % chance.randrange(keys), b"%03d" % (start + number)) for number in range(3)]
        log.append_as_leader(batch(*rows, timestamp=NOW_MS + start), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    replicate(log)
    log.run_due(NOW_MS)
    return log


def clean(files: Files, log: PartitionLog, last: int | None = None, now_ms: int = NOW_MS, **settings: int) -> Cleaned:
    return clean_log(files, log, find_dirty_range(log, last, now_ms), now_ms, CleanerSettings(**settings))


def contents(log: PartitionLog) -> Contents:
    return [
        (record.offset, record.key, record.value)
        for stored in stored_batches(log)
        for record in iter_records(RecordBatch(memoryview(stored.data)))
    ]


def latest(rows: Contents) -> Contents:
    return sorted({key: (offset, key, value) for offset, key, value in rows}.values())


def names(files: Files, suffix: str) -> list[str]:
    return sorted(entry.name for entry in files.entries(FOLDER) if entry.name.endswith(suffix))


def test_only_the_latest_records_are_left() -> None:
    files = new_files()
    log = filled(files)
    before = contents(log)
    cleaned = clean(files, log)
    assert contents(log) == latest(before)
    assert cleaned.end_offset == 120
    stats = cleaned.stats
    assert (stats.map_records_read, stats.records_read, stats.records_written) == (120, 120, 39)
    assert stats.bytes_written == log.size < stats.bytes_read == stats.map_bytes_read
    assert stats.map_utilization == 39 / (128 * 2**20 // 24)


def test_the_cleaned_log_is_read_by_offset_and_by_time_and_opened_again() -> None:
    files = new_files()
    log = filled(files, records=300, keys=60)
    clean(files, log)
    rows = contents(log)
    assert sum(segment.offset_index.count for segment in log.segments) > 3
    for reopened in (False, True):
        if reopened:
            log.run_due(NOW_MS + 10**6)
            log.flush(NOW_MS)
            log.close()
            log = open_small(files, SETTINGS, clean=True)
        assert contents(log) == rows
        for offset, _, _ in rows:
            header = log.segments[log.segments.floor_slot(offset)].find(offset)
            assert header is not None
            assert header.base_offset <= offset <= header.last_offset
            found = find_offset(log, NOW_MS + offset // 3 * 3)
            assert found is not None
            assert found.offset <= offset
        for segment in log.segments:
            segment.offset_index.check()
            segment.time_index.check()


def test_replaced_files_are_removed_after_the_delete_delay() -> None:
    files = new_files()
    log = filled(files, {"file.delete.delay.ms": "500"})
    old = names(files, ".log")[:-1]
    clean(files, log)
    assert names(files, ".log.deleted") == [name + ".deleted" for name in old]
    log.run_due(NOW_MS + 500)
    assert names(files, ".deleted") == []
    assert names(files, ".cleaned") == names(files, ".swap") == []


def test_a_round_continues_where_the_last_one_ended_and_joins_small_segments() -> None:
    files = new_files()
    log = filled(files)
    before = contents(log)
    clean(files, log)
    assert len(log.segments.sealed) == 4
    rows = [(b"k00", b"new"), (b"k99", b"new")]
    log.append_as_leader(batch(*rows, timestamp=NOW_MS), leader_epoch=0, now_ms=NOW_MS)
    log.roll(NOW_MS)
    replicate(log)
    cleaned = clean(files, log, 120)
    assert cleaned.end_offset == 122
    assert cleaned.stats.map_records_read == 2
    assert contents(log) == latest([*before, (120, b"k00", b"new"), (121, b"k99", b"new")])
    assert len(log.segments.sealed) == 3


def test_cleaning_a_clean_log_changes_nothing() -> None:
    files = new_files()
    log = filled(files)
    clean(files, log)
    before = files.tree(FOLDER)
    assert clean(files, log, 120).end_offset == 120
    assert files.tree(FOLDER) == before


def test_with_a_small_map_several_rounds_clean_the_whole_log() -> None:
    files = new_files()
    log = filled(files, keys=25)
    before = contents(log)
    ends: list[int] = []
    while not ends or ends[-1] < 120:
        ends.append(clean(files, log, ends[-1] if ends else None, dedupe_buffer_bytes=24 * 10).end_offset)
    assert len(ends) > 2
    assert ends == sorted(set(ends))
    assert contents(log) == latest(before)


def test_a_batch_larger_than_the_buffer_is_read_whole() -> None:
    files = new_files()
    log = filled(files)
    before = contents(log)
    clean(files, log, io_buffer_bytes=64)
    assert contents(log) == latest(before)


def test_cleaned_segments_keep_the_modification_times_of_the_old_ones() -> None:
    """The oldest formats know the age of a tombstone only from there."""
    files = new_files()
    log = filled(files)
    for number, segment in enumerate(log.segments.sealed):
        files.set_modified_ms(segment.log.path, 1000 + number)
    files.now_ms = NOW_MS + 99
    groups = group_segments(log.segments.sealed, 1000, 10**6, 120)
    clean(files, log)
    dates = [files.modified_ms(segment.log.path) for segment in log.segments.sealed]
    last = [sum(len(group) for group in groups[: number + 1]) - 1 for number in range(len(groups))]
    assert dates == [1000 + number for number in last]
    index = log.segments.first.time_index.file.path
    assert files.modified_ms(index) == dates[0]


def test_aborted_transactions_stay_in_the_index_while_they_have_data() -> None:
    files = new_files()
    log = open_small(files, SETTINGS)
    for producer_id, key in [(1, b"a"), (2, b"b")]:
        data = batch((key, b"x"), timestamp=NOW_MS, producer_id=producer_id, sequence=0, transactional=True)
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS)
        end_transaction(log, producer_id, commit=False)
    log.roll(NOW_MS)
    replicate(log)
    clean(files, log)
    # Both producers are known, so that the headers of their last batches are left.
    assert log.segments.first.transaction_index.entries == [
        AbortedTransaction(1, 0, 1, 2),
        AbortedTransaction(2, 2, 3, 4),
    ]
    log.producers.producers.clear()
    clean(files, log)
    assert len(log.segments.first.transaction_index.entries) == 2
    clean(files, log)
    assert log.segments.first.transaction_index.entries == []
    assert names(files, ".txnindex") == []


def test_records_below_the_log_start_are_skipped_without_an_error() -> None:
    files = new_files()
    log = filled(files, {"cleanup.policy": "compact,delete"})
    before = contents(log)
    log.delete_records(31, NOW_MS)
    assert clean(files, log, 10).end_offset == 120
    dirty = [row for row in before if row[0] >= 31]
    replaced = {key for _, key, _ in dirty}
    assert contents(log) == sorted([row for row in before if row[0] < 31 and row[1] not in replaced] + latest(dirty))
    log.delete_old_segments(NOW_MS)
    assert log.segments.first.base_offset <= 31


def test_groups_are_bounded_by_bytes_index_entries_and_offset_range() -> None:
    segments = filled(new_files()).segments.sealed
    assert [segment.size for segment in segments] == [1000] * 4

    def sizes(max_bytes: int = 10**6, max_index_bytes: int = 10**6, end_offset: int = 120) -> list[int]:
        return [len(group) for group in group_segments(segments, max_bytes, max_index_bytes, end_offset)]

    assert sizes() == [4]
    assert sizes(max_bytes=2 * 1000) == [2, 2]
    assert sizes(max_bytes=999) == [1, 1, 1, 1]
    entries = segments[0].time_index.count
    assert sizes(max_index_bytes=2 * entries * 12) == [2, 2]
    assert sizes(end_offset=2**31) == [4]
    assert sizes(end_offset=2**31 + 1) == [3, 1]


def test_cleaning_statistics_have_the_times_of_the_given_clock() -> None:
    files = new_files()
    log = filled(files)
    ticks = iter([5, 8, 20])
    dirty = find_dirty_range(log, None, NOW_MS)
    stats = clean_log(files, log, dirty, NOW_MS, clock_ms=lambda: next(ticks)).stats
    assert (stats.started_ms, stats.map_built_ms, stats.ended_ms) == (5, 8, 20)


# What may go wrong


def unharmed(files: Files, log: PartitionLog, before: Contents) -> None:
    """Check that no record is lost, now and after a reopen, that no temporary file remains, and that a second attempt
    succeeds."""
    assert names(files, ".cleaned") == names(files, ".swap") == []
    assert set(latest(before)) <= set(contents(log)) <= set(before)
    assert contents(open_small(files, SETTINGS, clean=False)) == contents(log)
    clean(files, log)
    assert contents(log) == latest(before)


@pytest.mark.parametrize("calls", [0, 1, 4, 6, 7])
def test_cleaning_stops_when_asked_to(calls: int) -> None:
    files = new_files()
    log = filled(files)
    before = contents(log)
    answers = iter([False] * calls + [True])
    with pytest.raises(CleaningAborted, match="topic-0"):
        clean_log(files, log, find_dirty_range(log, None, NOW_MS), NOW_MS, should_stop=lambda: next(answers))
    unharmed(files, log, before)


@pytest.mark.parametrize("free", [0, 10, 100, 300])
def test_a_full_disk_is_an_error_that_names_the_file(free: int) -> None:
    files = FaultyFiles(new_files())
    log = filled(files)
    before = contents(log)
    files.free_bytes = free
    with pytest.raises(OSError, match=r"No space left on device.*cleaned") as full:
        clean(files, log)
    assert full.value.errno == errno.ENOSPC
    files.heal()
    unharmed(files, log, before)


@pytest.mark.parametrize("operation", ["read", "write", "sync", "create", "truncate"])
@pytest.mark.parametrize("skip", [0, 1, 3])
def test_any_failed_file_operation_leaves_the_log_unchanged(operation: str, skip: int) -> None:
    files = FaultyFiles(new_files())
    log = filled(files)
    before = contents(log)
    files.fail(operation, errno.EIO, path=".log" if operation == "read" else ".cleaned", skip=skip, times=1)
    with pytest.raises(OSError, match="Input/output error"):
        clean(files, log)
    files.heal()
    unharmed(files, log, before)


@pytest.mark.parametrize("slot", [0, 3])
def test_a_corrupt_batch_ends_cleaning_before_its_segment_group(slot: int) -> None:
    files = new_files()
    log = filled(files)
    segment = log.segments[slot]
    header = list(segment.headers())[2]
    good = segment.log.read(header.position + 70, 1)
    segment.log.write(header.position + 70, bytes([good[0] ^ 1]))
    before = dict(files.tree(FOLDER))
    with pytest.raises(CorruptBatch, match=f"{segment.log.path} at position {header.position}: checksum"):
        clean(files, log)
    assert files.tree(FOLDER) == before
    segment.log.write(header.position + 70, good)
    unharmed(files, log, contents(log))


def test_a_batch_that_extends_past_its_segment_is_reported() -> None:
    files = new_files()
    log = filled(files)
    segment = log.segments[1]
    *_, header = segment.headers()
    segment.log.write(header.position + 8, (header.size - 12 + 1).to_bytes(4, "big"))
    with pytest.raises(
        CorruptBatch, match=f"at position {header.position}: batch length gives {header.size + 1} bytes"
    ):
        clean(files, log)
    assert names(files, ".cleaned") == []


def test_cleaned_files_left_by_a_crash_are_overwritten() -> None:
    files = new_files()
    log = filled(files)
    before = contents(log)
    for kind in (".log", ".index", ".timeindex", ".txnindex"):
        files.write(f"{FOLDER}/{0:020d}{kind}.cleaned", b"left over " * 100, sync=True)
    clean(files, log)
    assert contents(log) == latest(before)
    assert log.segments.first.transaction_index.entries == []


def test_cleaning_is_aborted_if_its_segments_were_deleted_meanwhile() -> None:
    files = new_files()
    log = filled(files)
    cleaning = Cleaning(files, log, find_dirty_range(log, None, NOW_MS), NOW_MS)
    cleaning.build_map()
    group = cleaning.groups()[0]
    cleaned = cleaning.write_group(group)
    start = log.segments.after(group[-1].base_offset)[0].base_offset
    log.delete_records(start, NOW_MS)
    log.delete_old_segments(NOW_MS)
    with pytest.raises(CleaningAborted, match="segments were deleted"):
        cleaning.swap(cleaned, group)
    assert names(files, ".cleaned") == []
    assert log.segments.first.base_offset == start
