"""L5, L6: which bytes of which file hold the records from an offset on."""

from __future__ import annotations

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.log_read import OffsetOutOfRange, locate
from tailrace.log.segments.position import LogPosition
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode
from tailrace.records.batch import split_batches
from tests.support.batches import batch
from tests.support.small_logs import NOW_MS, append, end_transaction, open_small, replicate

SIZE = len(batch(b"a"))
ALL = 10**6


def three_segments() -> PartitionLog:
    """Return a log with nine replicated batches of one record, three to a segment."""
    log = open_small(settings={"internal.segment.bytes": str(3 * SIZE)})
    for _ in range(9):
        append(log, b"a")
    replicate(log)
    return log


def offsets(log: PartitionLog, start: int, size: int = ALL, isolation: Isolation = Isolation.LOG_END) -> list[int]:
    read = log.read(start, size, isolation)
    return [one.base_offset for one in split_batches(read.slice.read() if read.slice else b"")]


def test_l5_a_read_returns_the_rest_of_one_segment() -> None:
    log = three_segments()
    assert offsets(log, 0) == [0, 1, 2]
    assert offsets(log, 4) == [4, 5]
    assert offsets(log, 8) == [8]


def test_l5_out_of_range_is_an_error_that_carries_the_bounds() -> None:
    log = three_segments()
    log.delete_records(4, NOW_MS)
    for offset in (3, 10, -1):
        with pytest.raises(OffsetOutOfRange, match=f"offset {offset} of topic-0 is outside the log, 4 to 9") as caught:
            log.read(offset, ALL)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert (caught.value.log_start_offset, caught.value.log_end_offset) == (4, 9)


def test_a_read_at_the_log_end_is_empty() -> None:
    log = three_segments()
    read = log.read(9, ALL)
    assert (read.slice, read.size, read.position) == (None, 0, LogPosition(9, 6, 3 * SIZE))


@pytest.mark.parametrize("at_least_one", [True, False])
def test_l5_a_read_stops_at_its_isolations_bound(at_least_one: bool) -> None:
    log = three_segments()
    append(log, b"x", producer_id=7, sequence=0, transactional=True)  # 9
    append(log, b"y")  # 10
    replicate(log, 11)
    append(log, b"z")  # 11, not replicated
    assert offsets(log, 9, isolation=Isolation.LOG_END) == [9, 10, 11]
    assert offsets(log, 9, isolation=Isolation.READ_UNCOMMITTED) == [9, 10]
    assert offsets(log, 8, isolation=Isolation.READ_COMMITTED) == [8]
    read = log.read(9, ALL, Isolation.READ_COMMITTED, at_least_one=at_least_one)
    assert (read.slice, read.aborted) == (None, [])
    assert log.read(11, ALL, Isolation.READ_UNCOMMITTED).position.offset == 11


def test_l5_a_read_past_the_bound_is_empty_and_has_its_position() -> None:
    log = three_segments()
    append(log, b"y")
    append(log, b"z")
    read = log.read(10, ALL, Isolation.READ_UNCOMMITTED)
    assert (read.slice, read.position) == (None, LogPosition(10, 9, SIZE))


def test_l6_a_read_begins_with_the_whole_batch_of_the_offset() -> None:
    log = open_small()
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    assert offsets(log, 2) == [0, 3]


def test_l6_a_read_includes_control_batches() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    end_transaction(log, 7, commit=True)
    replicate(log)
    assert offsets(log, 0, isolation=Isolation.READ_COMMITTED) == [0, 1]


def test_l5_a_read_continues_in_the_next_segment_if_no_batch_is_left() -> None:
    log = three_segments()
    middle = log.segments[1]
    middle.truncate_to(4, NOW_MS)  # as compaction might have left it
    assert offsets(log, 4) == [6, 7, 8]


def test_a_read_of_compacted_offsets_ends_at_the_log_end() -> None:
    log = three_segments()
    log.segments[2].truncate_to(7, NOW_MS)
    read = log.read(7, ALL)
    assert (read.slice, read.position.offset) == (None, 9)


def test_a_limited_slice_reports_that_its_first_batch_is_incomplete() -> None:
    log = three_segments()
    assert log.read(0, SIZE + 5).size == SIZE + 5
    short = log.read(0, 5)
    assert (short.size, short.first_entry_incomplete) == (5, True)
    whole = log.read(0, 5, at_least_one=True)
    assert (whole.size, whole.first_entry_incomplete) == (SIZE, False)
    assert log.read(0, 0).slice is None


def test_a_slice_survives_the_deletion_of_its_segment() -> None:
    log = three_segments()
    read = log.read(0, ALL)
    log.delete_records(5, NOW_MS)
    log.delete_old_segments(NOW_MS)
    assert read.slice is not None
    assert [one.base_offset for one in split_batches(read.slice.read())] == [0, 1, 2]


def test_f17_aborted_transactions_of_the_range_come_from_this_and_later_segments() -> None:
    log = open_small(settings={"index.interval.bytes": "0"})
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    append(log, b"b", producer_id=8, sequence=0, transactional=True)
    log.roll(NOW_MS)
    end_transaction(log, 7, commit=False)  # 2
    append(log, b"c", producer_id=7, sequence=1, transactional=True)  # 3
    log.roll(NOW_MS)
    end_transaction(log, 8, commit=False)  # 4
    end_transaction(log, 7, commit=False)  # 5
    replicate(log)

    def aborted(start: int, size: int) -> list[tuple[int, int]]:
        found = log.read(start, size, Isolation.READ_COMMITTED).aborted
        return [(one.producer_id, one.first_offset) for one in found or ()]

    assert aborted(0, ALL) == [(7, 0), (8, 1)]
    assert aborted(3, ALL) == [(8, 1), (7, 3)]
    assert aborted(5, ALL) == [(7, 3)]


def test_an_offset_is_located_at_its_batch() -> None:
    log = open_small()
    append(log, b"a", b"b")
    append(log, b"c")
    marks = log.snapshot_marks()
    assert locate(log.segments, marks, 1) == LogPosition(0, 0, 0)
    assert locate(log.segments, marks, 3) == marks.log_end
    log.truncate_fully(10, NOW_MS)
    assert locate(log.segments, log.snapshot_marks(), 5) == LogPosition(5)
