"""One .log file with its three indexes."""

from __future__ import annotations

import errno

import pytest

from tailrace.log.disk import file_names
from tailrace.log.recovery.scan_kernels import SegmentScan
from tailrace.log.segments.indexes.time_index import TimestampOffset
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.position import FileSlice, LogPosition
from tailrace.log.segments.segment import Segment, SegmentOverflow
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.topic_config import LONG_MAX
from tests.support.memory_files import MemoryFile, MemoryFiles
from tests.support.small_logs import FOLDER, NOW_MS, new_files, new_segment, placed, put

SPARSE = {"index.interval.bytes": "150"}  # an entry with every third batch of 69 bytes
SIZE = placed(0, b"a").size


def reopened(files: MemoryFiles, base_offset: int = 0, settings: dict[str, str] | None = None) -> Segment:
    return Segment.open(files, FOLDER, base_offset, parse_topic_config(settings or {}))


def filled(files: MemoryFiles, count: int = 12, base: int = 100, settings: dict[str, str] | None = None) -> Segment:
    """Return a segment with batches of one record each, a second apart."""
    segment = new_segment(files, base, settings or SPARSE)
    for n in range(count):
        put(segment, placed(base + n, b"a", timestamp=NOW_MS + 1000 * n))
    return segment


def entries(segment: Segment) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    offsets, times = segment.offset_index, segment.time_index
    return (
        [tuple(offsets.entry(slot)) for slot in range(offsets.count)],
        [tuple(times.entry(slot)) for slot in range(times.count)],
    )


def test_a_new_segment_has_a_log_and_two_empty_indexes() -> None:
    files = new_files()
    new_segment(files, 100)
    assert files.tree(FOLDER) == {
        "00000000000000000100.log": b"",
        "00000000000000000100.index": b"",
        "00000000000000000100.timeindex": b"",
    }


def test_l2_batches_lie_end_to_end_in_the_log_file() -> None:
    files = new_files()
    first, second = placed(0, b"a", b"b"), placed(2, b"c")
    segment = new_segment(files)
    put(segment, first)
    put(segment, second)
    assert files.read(segment.log.path) == bytes(first.view) + bytes(second.view)
    assert segment.size == first.size + second.size


def test_l2_an_index_entry_is_added_after_more_than_index_interval_bytes() -> None:
    segment = filled(new_files())
    offsets, times = entries(segment)
    assert offsets == [(103, 3 * SIZE), (106, 6 * SIZE), (109, 9 * SIZE)]
    assert times == [(NOW_MS + 1000 * n, 100 + n) for n in (3, 6, 9)]


def test_l2_every_batch_of_one_append_is_counted_for_the_index() -> None:
    segment = new_segment(new_files(), 100, SPARSE)
    put(segment, *(placed(100 + n, b"a", timestamp=NOW_MS + 1000 * n) for n in range(12)))
    assert entries(segment) == entries(filled(new_files()))


def test_l2_the_largest_timestamp_and_its_offset_are_tracked() -> None:
    segment = new_segment(new_files())
    assert segment.largest == TimestampOffset(-1, 0)
    put(segment, placed(0, b"a", b"b", timestamp=[50, 90]))
    put(segment, placed(2, b"c", timestamp=90))
    put(segment, placed(3, b"d", timestamp=70))
    assert segment.largest == TimestampOffset(90, 1), "the last offset of the first batch that has it"


def test_l2_offsets_must_fit_a_32_bit_relative_offset() -> None:
    files = new_files()
    segment = new_segment(files, 100)
    put(segment, placed(100 + 2**31 - 1, b"a"))
    with pytest.raises(SegmentOverflow, match=f"offset {100 + 2**31} does not fit"):
        put(segment, placed(100 + 2**31, b"a"))
    assert segment.size == SIZE
    assert files.size(segment.log.path) == SIZE


def test_a_partly_failed_write_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    files = new_files()
    segment = filled(files, 2)
    whole = files.read(segment.log.path)
    write = MemoryFile.write

    def full_disk(file: MemoryFile, position: int, data: bytes) -> None:
        write(file, position, bytes(data)[:10])
        raise OSError(errno.ENOSPC, "No space left on device", file.path)

    monkeypatch.setattr(MemoryFile, "write", full_disk)
    with pytest.raises(OSError, match="No space left"):
        put(segment, placed(102, b"a"))
    monkeypatch.undo()
    assert files.read(segment.log.path) == whole
    assert (segment.size, segment.next_offset()) == (2 * SIZE, 102)


def test_l5_a_read_is_a_slice_from_the_batch_that_holds_the_offset() -> None:
    segment = filled(new_files())
    place, found, incomplete = segment.read(107, 10 * SIZE, segment.size, at_least_one=False) or (None, None, True)
    assert place == LogPosition(107, 100, 7 * SIZE)
    assert found == FileSlice(segment.log, 7 * SIZE, 5 * SIZE)
    assert not incomplete


def test_l6_a_read_inside_a_batch_begins_with_the_whole_batch() -> None:
    segment = new_segment(new_files())
    put(segment, placed(0, b"a", b"b", b"c"))
    result = segment.read(2, 1000, segment.size, at_least_one=False)
    assert result is not None
    assert result[0] == LogPosition(0, 0, 0)
    assert result[1] == FileSlice(segment.log, 0, segment.size)


def test_l5_a_read_stops_at_the_upper_bounds_position() -> None:
    segment = filled(new_files())
    result = segment.read(101, 10**6, 4 * SIZE, at_least_one=False)
    assert result is not None
    assert result[1] == FileSlice(segment.log, SIZE, 3 * SIZE)


def test_a_limit_may_cut_a_batch_unless_one_whole_batch_is_required() -> None:
    segment = filled(new_files())
    cut = segment.read(101, 10, segment.size, at_least_one=False)
    assert cut == (LogPosition(101, 100, SIZE), FileSlice(segment.log, SIZE, 10), True)
    whole = segment.read(101, 10, segment.size, at_least_one=True)
    assert whole == (LogPosition(101, 100, SIZE), FileSlice(segment.log, SIZE, SIZE), False)


def test_a_read_of_no_bytes_returns_no_slice() -> None:
    segment = filled(new_files())
    place = LogPosition(101, 100, SIZE)
    assert segment.read(101, 0, segment.size, at_least_one=False) == (place, None, False)
    assert segment.read(101, 100, None, at_least_one=True) == (place, None, False)


def test_a_read_after_the_last_batch_of_a_segment_returns_none() -> None:
    assert filled(new_files()).read(112, 100, 10**6, at_least_one=True) is None


def test_a_gap_in_the_offsets_leads_to_the_batch_after_it() -> None:
    segment = new_segment(new_files())
    put(segment, placed(3, b"a"), placed(8, b"b"))
    found = segment.find(5)
    assert found is not None
    assert found.base_offset == 8


def test_truncation_cuts_before_the_batch_that_reaches_the_offset() -> None:
    files = new_files()
    segment = filled(files)
    segment.transaction_index.append(AbortedTransaction(1, 100, 104, 105))
    segment.transaction_index.append(AbortedTransaction(1, 105, 107, 108))
    assert segment.truncate_to(107, NOW_MS) == 5 * SIZE
    assert files.size(segment.log.path) == segment.size == 7 * SIZE
    offsets, times = entries(segment)
    assert [offset for offset, _ in offsets] == [offset for _, offset in times] == [103, 106]
    assert segment.largest == TimestampOffset(NOW_MS + 6000, 106)
    assert [entry.last_offset for entry in segment.transaction_index.entries] == [104]


def test_truncation_past_the_end_cuts_nothing() -> None:
    segment = filled(new_files())
    assert segment.truncate_to(112, NOW_MS) == 0
    assert segment.size == 12 * SIZE


def test_a_segment_truncated_to_nothing_has_the_age_of_a_new_one() -> None:
    segment = filled(new_files())
    segment.truncate_to(100, NOW_MS + 5000)
    assert (segment.size, segment.first_batch_timestamp(), segment.max_timestamp) == (0, -1, -1)
    assert segment.created_ms == NOW_MS + 5000


def test_compaction_lag_is_unlimited_for_a_segment_without_timestamps() -> None:
    segment = new_segment(new_files())
    assert segment.compaction_timestamp_ms() == LONG_MAX
    put(segment, placed(0, b"a", timestamp=50))
    assert segment.compaction_timestamp_ms() == 50


def test_the_retention_time_of_a_segment_without_timestamps_is_its_modification_time() -> None:
    files = new_files()
    segment = new_segment(files)
    put(segment, placed(0, b"a", timestamp=-1))
    files.set_modified_ms(segment.log.path, 777)
    assert segment.retention_timestamp_ms() == 777
    put(segment, placed(1, b"b", timestamp=50))
    assert segment.retention_timestamp_ms() == 50


def test_l7_a_sealed_segment_ends_its_time_index_with_the_largest_timestamp() -> None:
    files = new_files()
    segment = filled(files)
    segment.seal()
    assert entries(reopened(files, 100, SPARSE))[1][-1] == (NOW_MS + 11_000, 111)
    assert reopened(files, 100, SPARSE).largest == TimestampOffset(NOW_MS + 11_000, 111)


def test_sealing_cuts_a_preallocated_tail() -> None:
    files = new_files()
    segment = new_segment(files, 0, {"preallocate": "true", "internal.segment.bytes": "5000"})
    assert files.size(segment.log.path) == 5000
    put(segment, placed(0, b"a"))
    assert files.size(segment.log.path) == 5000
    segment.seal()
    assert files.size(segment.log.path) == SIZE


def test_a_closed_segment_is_reopened_by_its_name() -> None:
    files = new_files()
    filled(files).close()
    segment = reopened(files, 100, SPARSE)
    assert files.open_count == 0
    assert segment.next_offset() == 112
    found = segment.find(108)
    assert found is not None
    assert found.position == 8 * SIZE


def test_appending_continues_after_a_reopen() -> None:
    files = new_files()
    filled(files, 4).close()
    segment = reopened(files, 100, SPARSE)
    put(segment, placed(104, b"a", timestamp=NOW_MS + 50_000))
    segment.close()
    assert reopened(files, 100, SPARSE).largest == TimestampOffset(NOW_MS + 50_000, 104)


def scan(segment: Segment, batches: int | None = None) -> SegmentScan:
    """Scan the first batches of a segment."""
    found = SegmentScan(segment.base_offset, LONG_MAX, segment.config.index_interval_bytes, LONG_MAX)
    for header in list(segment.headers())[:batches]:
        found.take(header.position, header.size, header.last_offset, header.max_timestamp)
    return found


def test_rebuilding_gives_the_indexes_that_appending_gave() -> None:
    files = new_files()
    filled(files).close()
    before = files.tree(FOLDER)
    for name in before:
        if name.endswith("index"):
            files.write(f"{FOLDER}/{name}", b"garbage", sync=False)
    segment = reopened(files, 100, SPARSE)
    segment.start_rebuild()
    assert segment.finish_rebuild(scan(segment), segment.size) == 0
    assert files.tree(FOLDER) == before


def test_a_rebuild_cuts_what_follows_the_last_valid_batch() -> None:
    files = new_files()
    segment = filled(files, 3)
    segment.start_rebuild()
    assert segment.finish_rebuild(scan(segment, 2), 2 * SIZE) == SIZE
    assert segment.next_offset() == 102
    assert files.size(segment.log.path) == 2 * SIZE


def test_renaming_a_segment_adds_the_suffix_to_all_its_files() -> None:
    files = new_files()
    segment = filled(files, 3)
    segment.transaction_index.append(AbortedTransaction(1, 100, 101, 102))
    segment.rename(file_names.DELETED)
    assert sorted(files.tree(FOLDER)) == [
        f"00000000000000000100{kind}.deleted" for kind in (".index", ".log", ".timeindex", ".txnindex")
    ]
    assert segment.read(101, 100, segment.size, at_least_one=True) is not None, "readers still find it"
    segment.remove_files()
    assert files.tree(FOLDER) == {}


def test_a_segment_can_be_read_after_its_folder_was_renamed() -> None:
    files = new_files()
    segment = filled(files, 3)
    segment.close()
    files.replace(FOLDER, "/data/elsewhere")
    segment.moved_to("/data/elsewhere")
    assert segment.next_offset() == 103


def test_l3_an_index_is_full_when_only_the_last_entry_of_sealing_fits() -> None:
    segment = new_segment(new_files(), 0, {"segment.index.bytes": "36", "index.interval.bytes": "0"})
    full = []
    for n in range(4):
        full.append(segment.has_full_index)
        put(segment, placed(n, b"a", timestamp=NOW_MS + n))
    assert full == [False, False, False, True], "two entries and the last one of a time index of 36 bytes"
    segment.seal()
    assert segment.time_index.count == 3


def test_after_a_truncation_a_full_index_has_room_again() -> None:
    segment = new_segment(new_files(), 0, {"segment.index.bytes": "36", "index.interval.bytes": "0"})
    for n in range(3):
        put(segment, placed(n, b"a", timestamp=NOW_MS + n))
    assert segment.has_full_index
    segment.truncate_to(1, NOW_MS)
    assert not segment.has_full_index


def test_the_offset_bound_for_aborted_transactions_is_taken_from_the_index() -> None:
    segment = filled(new_files())
    assert segment.upper_bound_offset(4 * SIZE) == 106
    assert segment.upper_bound_offset(10 * SIZE) is None


def test_l7_a_lookup_by_time_starts_at_the_last_earlier_index_entry() -> None:
    segment = filled(new_files())
    assert segment.timestamp_start(NOW_MS + 7000, 100) == (106, 6 * SIZE)
    assert segment.timestamp_start(NOW_MS + 7000, 110) == (109, 9 * SIZE), "never before the log start"
    assert segment.timestamp_start(0, 100) == (100, 0)
