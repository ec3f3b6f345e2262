"""Offset → byte position."""

from __future__ import annotations

import pytest

from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.offset_index import OffsetIndex, OffsetPosition
from tests.support.small_logs import FOLDER, new_files

BASE = 1000
PATH = f"{FOLDER}/00000000000000001000.index"


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex(new_files(), PATH, BASE, 800)
    for offset, position in entries:
        index.append(offset, position)
    return index


THREE = ((1004, 100), (1009, 300), (1020, 450))


def test_l5_an_entry_is_eight_bytes_relative_offset_and_position() -> None:
    index = offset_index((1004, 100), (1009, 300))
    assert bytes(index.file.data).hex(" ", 4) == "00000004 00000064 00000009 0000012c"


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        (1000, (1000, 0)),
        (1003, (1000, 0)),
        (1004, (1004, 100)),
        (1008, (1004, 100)),
        (1009, (1009, 300)),
        (1500, (1020, 450)),
        (BASE + 2**33, (1020, 450)),
        (5, (1000, 0)),
    ],
)
def test_l5_a_lookup_finds_the_last_entry_at_or_below(offset: int, found: tuple[int, int]) -> None:
    assert offset_index(*THREE).lookup(offset) == OffsetPosition(*found)


def test_a_lookup_with_probes_has_the_same_result() -> None:
    index = offset_index(*((BASE + 3 * n, 100 * n) for n in range(1, 90)))
    for offset in range(BASE, BASE + 300):
        probes: list[int] = []
        assert index.lookup(offset, probes) == index.lookup(offset)
        assert 1 <= len(probes) <= 7


def test_an_empty_index_points_to_the_segments_start() -> None:
    index = offset_index()
    assert index.lookup(1500) == index.last() == OffsetPosition(BASE, 0)


@pytest.mark.parametrize(("position", "offset"), [(0, 1004), (99, 1004), (101, 1009), (300, 1009), (450, 1020)])
def test_an_upper_bound_is_the_first_entry_at_or_past_a_position(position: int, offset: int) -> None:
    found = offset_index(*THREE).upper_bound(position)
    assert found is not None
    assert found.offset == offset


def test_an_upper_bound_skips_a_first_entry_exactly_at_the_position_as_in_kafka() -> None:
    assert offset_index(*THREE).upper_bound(100) == OffsetPosition(1009, 300)


def test_after_the_last_entry_there_is_no_upper_bound() -> None:
    assert offset_index(*THREE).upper_bound(451) is None
    assert offset_index().upper_bound(0) is None


def test_l2_offsets_must_fit_four_bytes_past_the_base() -> None:
    index = offset_index()
    assert index.fits(BASE)
    assert index.fits(BASE + 2**31 - 1)
    assert not index.fits(BASE + 2**31)
    assert not index.fits(BASE - 1)


def test_an_offset_that_does_not_increase_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="is not above"):
        offset_index((1004, 100), (1004, 300))


@pytest.mark.parametrize(("offset", "left"), [(1000, 0), (1004, 0), (1005, 1), (1009, 1), (1010, 2), (1021, 3)])
def test_truncation_drops_entries_at_or_past_the_offset(offset: int, left: int) -> None:
    index = offset_index(*THREE)
    index.truncate_to(offset)
    assert [index.entry(slot) for slot in range(index.count)] == [OffsetPosition(*entry) for entry in THREE[:left]]


def test_a_valid_index_passes_the_check() -> None:
    offset_index(*THREE).check()
    offset_index().check()


@pytest.mark.parametrize("bad", ["00000004000000640000000400000065", "00000004000000640000000500000064"])
def test_an_offset_index_that_does_not_grow_is_corrupt(bad: str) -> None:
    index = offset_index()
    index.file.append(bytes.fromhex(bad))
    with pytest.raises(CorruptIndex, match="entry 1"):
        index.check()
