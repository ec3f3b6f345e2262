"""Positions of records in files, and the slices that reads return."""

from __future__ import annotations

from tailrace.log.segments.position import FileSlice, LogPosition
from tests.support.small_logs import new_files


def test_a_position_without_a_file_position_is_offset_only() -> None:
    assert LogPosition(17).is_offset_only
    assert not LogPosition(17, 0, 512).is_offset_only


def test_positions_are_ordered_by_offset_first() -> None:
    assert min(LogPosition(9), LogPosition(3, 0, 70), LogPosition(4)) == LogPosition(3, 0, 70)


def test_a_slice_reads_its_part_of_the_file() -> None:
    file = new_files().open("/data/topic-0/a", create=True)
    file.write(0, b"0123456789")
    assert FileSlice(file, 3, 4).read() == b"3456"


def test_a_slice_can_still_be_read_after_its_file_was_removed() -> None:
    files = new_files()
    file = files.open("/data/topic-0/a", create=True)
    file.write(0, b"0123456789")
    taken = FileSlice(file, 0, 2)
    files.remove("/data/topic-0/a")
    assert taken.read() == b"01"
