"""Timestamp → offset."""

from __future__ import annotations

import pytest

from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.time_index import TimeIndex, TimestampOffset
from tests.support.small_logs import FOLDER, new_files

BASE = 1000
PATH = f"{FOLDER}/00000000000000001000.timeindex"


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    index = TimeIndex(new_files(), PATH, BASE, 1200)
    for timestamp, offset in entries:
        index.append(timestamp, offset)
    return index


THREE = ((70, 1004), (90, 1009), (500, 1020))


def test_l7_an_entry_is_twelve_bytes_timestamp_and_relative_offset() -> None:
    index = time_index((1_700_000_000_000, 1004))
    assert bytes(index.file.data).hex(" ") == "00 00 01 8b cf e5 68 00 00 00 00 04"


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [(69, (-1, 1000)), (70, (70, 1004)), (89, (70, 1004)), (90, (90, 1009)), (10**15, (500, 1020)), (-5, (-1, 1000))],
)
def test_l7_a_lookup_finds_the_last_entry_at_or_below(timestamp: int, found: tuple[int, int]) -> None:
    assert time_index(*THREE).lookup(timestamp) == TimestampOffset(*found)


def test_a_lookup_with_probes_has_the_same_result() -> None:
    index = time_index(*((10 * n, BASE + n) for n in range(1, 90)))
    for timestamp in range(0, 950, 3):
        probes: list[int] = []
        assert index.lookup(timestamp, probes) == index.lookup(timestamp)
        assert 1 <= len(probes) <= 7


def test_an_entry_without_a_larger_timestamp_is_not_added() -> None:
    index = time_index(*THREE)
    index.append(500, 1030)
    index.append(499, 1031)
    assert index.count == 3
    assert index.last() == TimestampOffset(500, 1020)


def test_an_entry_may_repeat_the_last_offset_but_not_go_back() -> None:
    index = time_index(*THREE)
    index.append(501, 1020)
    with pytest.raises(AssertionError, match="is below"):
        index.append(502, 1019)


@pytest.mark.parametrize(("offset", "left"), [(1004, 0), (1005, 1), (1009, 1), (1010, 2), (1020, 2), (1021, 3)])
def test_truncation_drops_entries_at_or_past_the_offset(offset: int, left: int) -> None:
    index = time_index(*THREE)
    index.truncate_to(offset)
    assert [index.entry(slot) for slot in range(index.count)] == [TimestampOffset(*entry) for entry in THREE[:left]]


def test_an_empty_time_index_returns_its_base_offset() -> None:
    assert time_index().last() == time_index().lookup(5) == TimestampOffset(-1, BASE)


def test_a_valid_index_passes_the_check() -> None:
    time_index(*THREE, (501, 1020)).check()
    time_index().check()


@pytest.mark.parametrize("bad", [((70, 4), (70, 5)), ((70, 4), (71, 3))])
def test_a_time_index_that_goes_back_is_corrupt(bad: tuple[tuple[int, int], ...]) -> None:
    index = time_index()
    for timestamp, relative in bad:
        index.file.append(timestamp.to_bytes(8, "big") + relative.to_bytes(4, "big"))
    with pytest.raises(CorruptIndex, match="entry 1"):
        index.check()
