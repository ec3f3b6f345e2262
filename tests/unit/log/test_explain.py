"""An explained read is the read: its slice, its probes, its cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.explain import ReadExplanation, explain_offset, explain_timestamp
from tailrace.log.inspect.offline import open_exact
from tailrace.log.partition_log import OffsetOutOfRange, PartitionLog
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.watermarks import Isolation
from tests.support.command import write_directory
from tests.support.golden import golden
from tests.support.small_logs import append, open_small, replicate

NOW_MS = 1_700_000_100_000
GOLDEN = ["codecs", "compacted", "transactions", "records-deleted", "timestamps-out-of-order", "message-format-v1"]


def open_partition(path: Path) -> PartitionLog:
    folder = next(folder for folder in read_data_directory(DiskFiles(), str(path)).folders if not folder.mark)
    return open_exact(DiskFiles(), folder, NOW_MS).log


def assert_explains_the_read(log: PartitionLog, offset: int, max_bytes: int, isolation: Isolation) -> ReadExplanation:
    reported = explain_offset(log, offset, max_bytes, isolation)
    if not log.log_start_offset <= offset <= log.log_end_offset:
        with pytest.raises(OffsetOutOfRange) as refused:
            log.read(offset, max_bytes, isolation, at_least_one=True)
        assert reported.empty_because == str(refused.value)
        return reported
    read = log.read(offset, max_bytes, isolation, at_least_one=True)
    if read.slice is None:
        assert reported.slice is None
        assert reported.empty_because
    else:
        assert reported.slice is not None
        assert (reported.slice.path, reported.slice.position, reported.slice.size) == (
            read.slice.file.path,
            read.slice.position,
            read.slice.size,
        )
        walked = reported.walks[-1].walked
        assert walked[-1].is_match
        assert walked[-1].position == read.slice.position
        assert all(batch.last_offset < offset for batch in walked[:-1])
    assert reported.aborted == read.aborted
    return reported


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("isolation", Isolation)
def test_an_explanation_has_the_slice_of_the_read(name: str, isolation: Isolation, tmp_path: Path) -> None:
    log = open_partition(golden(name).unpack(tmp_path))
    for offset in range(-1, log.log_end_offset + 2):
        for max_bytes in (1, 500, 1_000_000):
            assert_explains_the_read(log, offset, max_bytes, isolation)


def test_each_probe_halves_the_index(tmp_path: Path) -> None:
    log = open_partition(write_directory(tmp_path / "data", "plain"))
    for offset in range(log.log_end_offset):
        reported = explain_offset(log, offset, 100, Isolation.LOG_END)
        search = reported.walks[0].search
        low, high = 0, search.entries - 1
        for probe in search.probes:
            assert probe.slot == (low + high) // 2
            assert probe.is_at_or_below is (probe.key <= offset)
            low, high = (probe.slot + 1, high) if probe.is_at_or_below else (low, probe.slot - 1)
        assert low > high
        assert search.slot == high
        index = log.segments[reported.walks[0].slot].offset_index
        assert (search.key, search.points_to) == tuple(index.lookup(offset))
        assert reported.walks[0].walk_start == search.points_to


@pytest.mark.parametrize("name", ["timestamps-out-of-order", "codecs", "log-append-time", "message-format-v1"])
def test_an_explained_lookup_by_time_has_the_result_of_the_lookup(name: str, tmp_path: Path) -> None:
    log = open_partition(golden(name).unpack(tmp_path))
    times = {header.max_timestamp + n for segment in log.segments for header in segment.headers() for n in (-1, 0, 1)}
    for timestamp in sorted(time for time in times if time >= 0):
        reported = explain_timestamp(log, timestamp)
        assert reported.found == find_offset(log, timestamp)
        assert [segment.is_reached for segment in reported.segments[:-1]] == [False] * (len(reported.segments) - 1)
        if reported.found is not None:
            assert reported.walk is not None
            assert reported.walk.walked[-1].is_match
            assert reported.walk.walked[-1].last_offset >= reported.found.offset


def test_the_cost_counts_the_bytes_that_were_read() -> None:
    log = open_small(settings={"index.interval.bytes": "1000"})
    for n in range(100):
        append(log, b"x" * 150, leader_epoch=0)
        assert n == log.log_end_offset - 1
    replicate(log)
    reported = explain_offset(log, 57, 4096, Isolation.READ_UNCOMMITTED)
    assert reported.cost is not None
    assert reported.cost.index_probes == len(reported.walks[0].search.probes) > 0
    assert reported.cost.index_pages == 1
    assert reported.slice is not None
    last = reported.walks[0].walked[-1]
    assert reported.cost.bytes_read >= last.position + 61 - reported.walks[0].walk_start
    assert reported.cost.reads >= 1
    first_page, last_page = reported.slice.position // 4096, (reported.slice.position + reported.slice.size - 1) // 4096
    assert reported.cost.slice_pages == last_page - first_page + 1


def test_a_walk_that_finds_no_batch_continues_in_the_next_segment(tmp_path: Path) -> None:
    log = open_partition(golden("compacted").unpack(tmp_path))
    empty_handed = [
        reported
        for offset in range(log.log_end_offset)
        if len((reported := assert_explains_the_read(log, offset, 1000, Isolation.LOG_END)).walks) > 1
    ]
    for reported in empty_handed:
        assert not any(batch.is_match for walk in reported.walks[:-1] for batch in walk.walked)


def test_a_read_ends_at_the_explained_position(tmp_path: Path) -> None:
    log = open_partition(write_directory(tmp_path / "data", "plain"))
    assert len(log.segments) > 2
    assert explain_offset(log, 0, 10, Isolation.LOG_END).slice.ends_with == "size"  # type: ignore[union-attr]
    assert explain_offset(log, 0, 10**6, Isolation.LOG_END).slice.ends_with == "segment"  # type: ignore[union-attr]
    last = explain_offset(log, log.log_end_offset - 1, 10**6, Isolation.READ_UNCOMMITTED).slice
    assert last is not None
    assert last.ends_with == "bound"


def test_an_index_out_of_order_is_reported(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain")
    min((path / "plain-0").glob("*.index")).write_bytes(b"\xff" * 64)
    log = open_partition(path)
    with pytest.raises(CorruptIndex, match="is not above"):
        explain_offset(log, 3, 100, Isolation.LOG_END)


def test_explaining_leaves_the_log_as_it_was() -> None:
    log = open_small()
    append(log, b"a")
    replicate(log)
    before = [segment.log for segment in log.segments]
    explain_offset(log, 0, 100, Isolation.READ_UNCOMMITTED)
    explain_timestamp(log, 0)
    assert [segment.log for segment in log.segments] == before
