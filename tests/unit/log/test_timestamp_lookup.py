"""L7: lookup by timestamp."""

from __future__ import annotations

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.timestamp_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    FoundOffset,
    find_in_segment,
    find_offset,
)
from tailrace.records.batch import Codec
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.small_logs import NOW_MS, append, new_files, open_small, replicate


def log_of(*batches: list[int], codec: Codec = Codec.NONE, interval: int = 100) -> PartitionLog:
    """Return a log of batches given by their records' timestamps."""
    log = open_small(settings={"index.interval.bytes": str(interval)})
    for timestamps in batches:
        append(log, *(b"value" for _ in timestamps), timestamp=timestamps, codec=codec)
    replicate(log)
    return log


def found(log: PartitionLog, time: int) -> tuple[int, int] | None:
    answer = find_offset(log, time)
    return None if answer is None else (answer.offset, answer.timestamp)


@pytest.mark.parametrize("codec", list(Codec))
def test_l7_the_first_record_at_or_after_a_time_is_found_inside_its_batch(codec: Codec) -> None:
    log = log_of([10, 20], [20, 30, 40], [50], codec=codec)
    assert [found(log, time) for time in (0, 10, 11, 20, 21, 30, 31, 41, 50, 51)] == [
        *((0, 10), (0, 10), (1, 20), (1, 20), (3, 30), (3, 30), (4, 40), (5, 50), (5, 50), None)
    ]


def test_l7_first_means_by_offset_also_where_timestamps_go_back() -> None:
    log = log_of([100], [50], [70, 60], [100, 90], [200], [10])
    assert found(log, 55) == (0, 100), "the smallest offset, not the smallest timestamp"
    assert found(log, 101) == (6, 200)
    assert found(log, 5) == (0, 100)


def test_l7_equal_timestamps_give_the_first_of_them() -> None:
    log = log_of([7, 7], [7], [7, 7, 8])
    assert found(log, 7) == (0, 7)
    assert found(log, 8) == (5, 8)


def test_l7_the_first_segment_that_reaches_the_time_is_searched() -> None:
    log = open_small()
    for base in (100, 300, 200):
        append(log, b"a", b"b", timestamp=[base, base + 50])
        log.roll(NOW_MS)
    assert found(log, 160) == (2, 300)
    assert found(log, 120) == (1, 150)
    assert found(log, 351) is None


def test_l7_a_time_after_the_last_record_is_not_found_with_an_empty_active_segment() -> None:
    log = log_of([100])
    log.roll(NOW_MS)
    assert found(log, 101) is None


def test_l7_with_log_append_time_all_records_of_a_batch_have_its_time() -> None:
    log = open_small(settings={"message.timestamp.type": "LogAppendTime"})
    append(log, b"a", b"b", timestamp=[5, 9], now_ms=NOW_MS)
    append(log, b"c", timestamp=[7], now_ms=NOW_MS + 10)
    assert found(log, NOW_MS) == (0, NOW_MS)
    assert found(log, NOW_MS + 1) == (2, NOW_MS + 10)


def test_l7_records_below_the_log_start_are_passed_over() -> None:
    log = log_of([10, 20, 30], [15])
    log.delete_records(2, NOW_MS)
    assert found(log, 5) == (2, 30)
    log.delete_records(3, NOW_MS)
    assert found(log, 5) == (3, 15)
    assert found(log, 20) is None, "only deleted records are that late"


def test_l7_special_targets_return_the_bounds_and_the_largest_timestamp() -> None:
    log = log_of([10, 90, 20], [90], [50])
    log.delete_records(1, NOW_MS)
    assert find_offset(log, EARLIEST) == FoundOffset(1, -1, 0)
    assert find_offset(log, EARLIEST_LOCAL) == FoundOffset(1, -1, 0)
    assert find_offset(log, LATEST) == FoundOffset(5, -1, 0)
    assert find_offset(log, MAX_TIMESTAMP) == FoundOffset(1, 90, 0)
    assert find_offset(log, LATEST_TIERED) == FoundOffset(-1, -1, -1)


def test_l7_the_record_with_the_largest_timestamp_is_found_over_all_segments() -> None:
    log = open_small()
    for timestamps in ([10, 400, 20], [300], [400]):
        append(log, *(b"v" for _ in timestamps), timestamp=timestamps)
        log.roll(NOW_MS)
    assert find_offset(log, MAX_TIMESTAMP) == FoundOffset(1, 400, 0)


def test_a_lookup_in_an_empty_log_finds_only_its_bounds() -> None:
    log = open_small()
    assert find_offset(log, 5) is None
    assert find_offset(log, MAX_TIMESTAMP) is None
    assert find_offset(log, EARLIEST) == FoundOffset(0, -1, None)
    assert find_offset(log, LATEST) == FoundOffset(0, -1, None)


def test_the_leader_epoch_is_that_of_the_batch() -> None:
    log = open_small()
    append(log, b"a", timestamp=10, leader_epoch=3)
    append(log, b"b", timestamp=20, leader_epoch=8)
    assert find_offset(log, 10) == FoundOffset(0, 10, 3)
    assert find_offset(log, 11) == FoundOffset(1, 20, 8)
    assert find_offset(log, LATEST) == FoundOffset(2, -1, 8)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_l7_messages_of_format_1_are_found_inside_their_wrapper(codec: Codec) -> None:
    log = open_small()
    records = [Record(n, 10 * n, TimestampType.CREATE_TIME, None, b"v") for n in range(6)]
    for first in (0, 3):
        log.append_as_follower(
            build_messages(records[first : first + 3], magic=1, codec=codec), leader_epoch=0, now_ms=NOW_MS
        )
    assert [found(log, time) for time in (0, 11, 25, 50, 51)] == [(0, 0), (2, 20), (3, 30), (5, 50), None]
    assert find_offset(log, MAX_TIMESTAMP) == FoundOffset(5, 50, None)


def test_l7_messages_of_format_0_are_not_found_by_time() -> None:
    log = open_small()
    records = [Record(n, -1, TimestampType.NO_TIMESTAMP, None, b"v") for n in range(3)]
    log.append_as_follower(build_messages(records, magic=0), leader_epoch=0, now_ms=NOW_MS)
    assert find_offset(log, 5) is None
    assert find_offset(log, MAX_TIMESTAMP) is None


@pytest.mark.parametrize("interval", [0, 150, 10**6])
def test_l7_the_answer_does_not_depend_on_how_dense_the_indexes_are(interval: int) -> None:
    times = [5, 3, 9, 9, 2, 30, 8, 31, 31, 6, 40, 1]
    log = log_of(*([time] for time in times), interval=interval)
    for time in range(45):
        first = next(((offset, at) for offset, at in enumerate(times) if at >= time), None)
        assert found(log, time) == first


def test_a_lookup_reads_no_batch_that_is_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    files = new_files()
    log = open_small(files)
    for time in range(10):
        append(log, bytes(5000), timestamp=time)
    segment = log.segments.active
    reads: list[int] = []
    read = segment.log.read

    def noting_read(position: int, size: int) -> bytes:
        reads.append(size)
        return read(position, size)

    monkeypatch.setattr(segment.log, "read", noting_read)
    assert find_in_segment(segment, 9, 0) == FoundOffset(9, 9, 0)
    assert sum(size > 1000 for size in reads) == 1, "headers, and the one batch that holds the record"
