"""Segments ordered by base offset."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment_list import SegmentList
from tests.support.small_logs import new_files, new_segment, placed, put


def segment_list(*base_offsets: int) -> SegmentList:
    files = new_files()
    return SegmentList([new_segment(files, base) for base in base_offsets])


def bases(segments: object) -> list[int]:
    return [segment.base_offset for segment in segments]  # type: ignore[attr-defined]


def test_the_last_one_is_active_and_the_others_are_sealed() -> None:
    segments = segment_list(200, 0, 100)
    assert bases(segments) == segments.base_offsets == [0, 100, 200]
    assert (segments.first.base_offset, segments.active.base_offset) == (0, 200)
    assert bases(segments.sealed) == [0, 100]


@pytest.mark.parametrize(("offset", "slot"), [(9, -1), (10, 0), (99, 0), (100, 1), (10**12, 2)])
def test_l5_the_floor_segment_is_the_last_that_starts_at_or_below_an_offset(offset: int, slot: int) -> None:
    assert segment_list(10, 100, 200).floor_slot(offset) == slot


def test_get_returns_only_the_segment_with_exactly_that_base_offset() -> None:
    segments = segment_list(0, 100)
    assert segments.get(50) is None
    assert 50 not in segments
    assert 100 in segments
    assert segments.get(100) is segments[1]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, 11, [10]),
        (10, 100, [10]),
        (99, 101, [10, 100]),
        (100, 200, [100]),
        (100, 201, [100, 200]),
        (250, 2**62, [200]),
        (0, 10, []),
        (50, 50, []),
    ],
)
def test_between_returns_the_segments_that_may_have_offsets_of_the_range(
    start: int, end: int, found: list[int]
) -> None:
    assert bases(segment_list(10, 100, 200).between(start, end)) == found


def test_after_excludes_and_tail_includes_the_segment_of_the_offset() -> None:
    segments = segment_list(10, 100, 200)
    assert bases(segments.after(99)) == [100, 200]
    assert bases(segments.after(100)) == [200]
    assert bases(segments.tail(1)) == [100, 200]


def test_adding_keeps_the_order_and_replaces_the_same_base() -> None:
    segments = segment_list(0, 200)
    files = new_files()
    segments.add(new_segment(files, 100))
    again = new_segment(files, 200)
    segments.add(again)
    assert bases(segments) == segments.base_offsets == [0, 100, 200]
    assert segments.active is again


def test_a_removed_segment_is_no_longer_in_the_list() -> None:
    segments = segment_list(0, 100, 200)
    segments.remove(100)
    assert bases(segments) == segments.base_offsets == [0, 200]
    with pytest.raises(AssertionError, match="no segment starts at 100"):
        segments.remove(100)


def test_the_total_size_counts_log_files() -> None:
    segments = segment_list(0, 100)
    put(segments[0], placed(0, b"a"))
    put(segments[1], placed(100, b"a"))
    assert segments.total_size() == 2 * segments[0].size > 0


def test_l10_aborted_transactions_are_collected_from_all_segments_of_the_range() -> None:
    segments = segment_list(0, 100, 200)
    aborted = [
        AbortedTransaction(1, 50, 90, 60),
        AbortedTransaction(2, 60, 150, 151),
        AbortedTransaction(3, 155, 260, 261),
    ]
    for segment, entry in zip(segments, aborted, strict=True):
        segment.transaction_index.append(entry)
    assert segments.aborted_transactions(0, 55, 151) == aborted[:2]
    assert segments.aborted_transactions(0, 55, 152) == aborted[:2], "the third begins past the range"
    assert segments.aborted_transactions(0, 55, 156) == aborted
    assert segments.aborted_transactions(100, 100, 300) == aborted[1:]


def test_the_total_size_follows_every_change_and_is_not_summed_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    segments, files, dice = segment_list(0, 100), new_files(), Random(7)
    assert segments.total_size() == 0
    walked = 0
    for step in range(300):
        bases_now = list(segments.base_offsets)
        match dice.randrange(6):
            case 0 | 1:
                segments.add(new_segment(files, bases_now[-1] + 100))
            case 2 if len(segments) > 1:
                segments.remove(bases_now[0])
            case 3 if len(segments) > 1:
                segments.remove(bases_now[-1])
            case 4 if len(segments) > 2:
                segments.remove(bases_now[1])
            case _:
                put(segments.active, placed(segments.active.next_offset(), b"x" * step))
        walks = []
        monkeypatch.setattr(SegmentList, "sealed", property(lambda self: walks.append(1) or self[:-1]))  # noqa: B023
        assert segments.total_size() == sum(one.size for one in segments)
        walked += len(walks)
        monkeypatch.undo()
    assert walked == 0
