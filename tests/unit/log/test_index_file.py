"""The common part of the sparse indexes: entries of a fixed width, written out late, binary search."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles, Files
from tailrace.log.segments.indexes.index_file import INDEX_BYTES_MAX, CorruptIndex, IndexFile, floor_slot
from tests.support.small_logs import FOLDER, new_files

PATH = f"{FOLDER}/00000000000000000000.index"


def index_file(files: Files, entries: bytes | None = None) -> IndexFile:
    if entries is not None:
        files.write(PATH, entries, sync=False)
    return IndexFile(files, PATH, 4, 400)


def test_a_missing_file_is_an_empty_index() -> None:
    files = new_files()
    index = index_file(files)
    assert (index.count, bytes(index.data)) == (0, b"")
    assert not files.exists(PATH)


def test_entries_reach_the_file_when_they_are_written_out() -> None:
    files = new_files()
    index = index_file(files)
    index.append(b"aaaa")
    index.append(b"bbbb")
    assert not files.exists(PATH)
    index.write_out()
    assert files.read(PATH) == b"aaaabbbb"
    index.append(b"cccc")
    index.write_out()
    assert files.read(PATH) == b"aaaabbbbcccc"


def test_an_index_that_was_not_touched_is_neither_read_nor_written() -> None:
    files = new_files()
    index = index_file(files, b"aaaa")
    files.set_modified_ms(PATH, 5)
    index.write_out()
    assert files.modified_ms(PATH) == 5
    assert files.open_count == 0


def test_preallocated_zeros_are_padding() -> None:
    files = new_files()
    for used in range(9):
        index = index_file(files, b"eeee" * used + bytes(4 * (40 - used)))
        assert index.count == used


def test_a_single_entry_of_zeros_is_an_entry() -> None:
    assert index_file(new_files(), bytes(4)).count == 1
    assert index_file(new_files(), bytes(8)).count == 0


def test_an_entry_of_zeros_before_others_is_kept() -> None:
    assert index_file(new_files(), bytes(4) + b"eeee" + bytes(32)).count == 2


def test_writing_out_truncates_the_padding() -> None:
    files = new_files()
    index = index_file(files, b"aaaa" + bytes(36))
    index.append(b"bbbb")
    index.write_out()
    assert files.read(PATH) == b"aaaabbbb"


def test_a_size_that_is_not_a_multiple_of_the_entry_size_is_corrupt() -> None:
    with pytest.raises(CorruptIndex, match=r"00000000000000000000\.index: 7 bytes"):
        _ = index_file(new_files(), b"aaaabbb").count


def test_truncation_reaches_the_file_when_it_is_written_out() -> None:
    files = new_files()
    index = index_file(files, b"aaaabbbbcccc")
    index.truncate(1)
    assert index.count == 1
    index.append(b"dddd")
    index.write_out()
    assert files.read(PATH) == b"aaaadddd"


def test_reset_discards_entries_without_reading_the_file() -> None:
    files = new_files()
    index = index_file(files, b"seven..")
    index.reset()
    assert index.count == 0
    index.append(b"aaaa")
    index.write_out()
    assert files.read(PATH) == b"aaaa"


def test_reset_of_a_missing_file_creates_an_empty_file() -> None:
    files = new_files()
    index = index_file(files)
    index.reset()
    index.write_out()
    assert files.read(PATH) == b""


def test_release_keeps_entries_that_are_not_written_out() -> None:
    files = new_files()
    index = index_file(files, b"aaaa")
    index.append(b"bbbb")
    index.release()
    assert index.count == 2
    index.write_out()
    index.release()
    files.write(PATH, b"zzzz", sync=False)
    assert bytes(index.data) == b"zzzz", "released and written out, it is read again"


def test_capacity_counts_whole_entries() -> None:
    assert IndexFile(new_files(), PATH, 12, 1024).max_entries == 85


KEYS = [10, 20, 20, 30, 40]


@pytest.mark.parametrize(("target", "slot"), [(9, -1), (10, 0), (15, 0), (20, 2), (29, 2), (30, 3), (40, 4), (1000, 4)])
def test_the_floor_slot_is_the_last_one_at_or_below_the_target(target: int, slot: int) -> None:
    assert floor_slot(len(KEYS), KEYS.__getitem__, target) == slot


def test_a_search_records_the_slots_that_it_probes() -> None:
    probes: list[int] = []
    floor_slot(1000, lambda slot: slot, 700, probes)
    assert len(probes) <= 10
    assert probes[0] == 499
    assert 700 in probes


def test_nothing_is_found_in_an_empty_index() -> None:
    assert floor_slot(0, KEYS.__getitem__, 5) == -1


def test_an_index_larger_than_any_can_be_is_corrupt_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.touch()
    os.truncate(path, INDEX_BYTES_MAX + 1)
    with pytest.raises(CorruptIndex, match="an index of 2,147,483,648 bytes"):
        assert IndexFile(DiskFiles(), str(path), 8, 400).data
