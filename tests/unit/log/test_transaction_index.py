"""L10: the aborted transactions of a segment."""

from __future__ import annotations

import pytest

from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction, TransactionIndex
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, new_files

PATH = f"{FOLDER}/00000000000000000100.txnindex"
FIRST = AbortedTransaction(producer_id=7, first_offset=90, last_offset=110, last_stable_offset=95)
SECOND = AbortedTransaction(producer_id=8, first_offset=95, last_offset=120, last_stable_offset=121)
THIRD = AbortedTransaction(producer_id=7, first_offset=130, last_offset=140, last_stable_offset=141)


def transaction_index(files: MemoryFiles, *entries: AbortedTransaction) -> TransactionIndex:
    index = TransactionIndex(files, PATH, 100)
    for entry in entries:
        index.append(entry)
    return index


def test_l10_an_entry_is_34_bytes_version_producer_and_three_offsets() -> None:
    files = new_files()
    transaction_index(files, FIRST)
    assert files.read(PATH).hex(" ") == (
        "00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 5a 00 00 00 00 00 00 00 6e 00 00 00 00 00 00 00 5f"
    )


def test_a_transaction_index_without_entries_has_no_file() -> None:
    files = new_files()
    index = transaction_index(files)
    assert index.entries == []
    assert not index.sync()
    assert not files.exists(PATH)


def test_entries_are_written_at_once_and_read_back() -> None:
    files = new_files()
    transaction_index(files, FIRST, SECOND)
    assert transaction_index(files).entries == [FIRST, SECOND]


def test_l10_a_search_ends_at_the_first_entry_whose_last_stable_offset_reaches_the_bound() -> None:
    index = transaction_index(new_files(), FIRST, SECOND, THIRD)
    assert index.collect(100, 121) == ([FIRST, SECOND], True)
    assert index.collect(100, 141) == ([FIRST, SECOND, THIRD], True)
    assert index.collect(100, 142) == ([FIRST, SECOND, THIRD], False), "later segments may hold more"


def test_l10_only_transactions_that_overlap_the_range_are_found() -> None:
    index = transaction_index(new_files(), FIRST, SECOND, THIRD)
    assert index.collect(111, 200) == ([SECOND, THIRD], False)
    assert index.collect(141, 200) == ([], False)
    assert index.collect(0, 90) == ([], True)
    assert index.collect(0, 91) == ([FIRST], True)


def test_truncation_drops_transactions_that_end_at_or_past_the_offset() -> None:
    files = new_files()
    index = transaction_index(files, FIRST, SECOND, THIRD)
    index.truncate_to(120)
    assert index.entries == transaction_index(files).entries == [FIRST]
    index.append(THIRD)
    assert transaction_index(files).entries == [FIRST, THIRD]


def test_a_rebuilt_transaction_index_replaces_the_old_file_as_a_whole() -> None:
    files = new_files()
    index = transaction_index(files, FIRST)
    index.reset()
    index.append(SECOND)
    assert transaction_index(files).entries == [FIRST]
    index.rewrite()
    assert transaction_index(files).entries == [SECOND]


def test_an_index_rebuilt_without_entries_is_an_empty_file() -> None:
    files = new_files()
    index = transaction_index(files, FIRST)
    index.reset()
    index.rewrite()
    assert files.read(PATH) == b""


def test_a_last_entry_that_is_cut_short_is_overwritten() -> None:
    files = new_files()
    transaction_index(files, FIRST, SECOND)
    files.write(PATH, files.read(PATH)[:50], sync=False)
    index = transaction_index(files)
    assert index.entries == [FIRST]
    index.append(THIRD)
    assert transaction_index(files).entries == [FIRST, THIRD]


def test_an_unknown_version_is_corrupt_and_located() -> None:
    files = new_files()
    transaction_index(files, FIRST, SECOND)
    data = bytearray(files.read(PATH))
    data[34:36] = b"\0\1"
    files.write(PATH, data, sync=False)
    with pytest.raises(CorruptIndex, match=r"txnindex: unknown entry version 1 at position 34"):
        _ = transaction_index(files).entries


def test_an_entry_that_ends_before_the_segment_is_corrupt() -> None:
    files = new_files()
    transaction_index(files, FIRST._replace(last_offset=99))
    with pytest.raises(CorruptIndex, match="ends before base 100"):
        _ = transaction_index(files).entries


def test_an_entry_out_of_the_order_of_markers_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="does not follow the last entry"):
        transaction_index(new_files(), SECOND, FIRST)


@pytest.mark.parametrize(("written", "kept"), [((FIRST,), [FIRST, SECOND]), ((), [FIRST])])
def test_truncation_after_failed_writes_does_not_count_unwritten_entries_as_written(
    written: tuple[AbortedTransaction, ...], kept: list[AbortedTransaction], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = new_files()
    index = transaction_index(files, *written)
    with monkeypatch.context() as patch:

        def open_file(path: str, *, create: bool = False) -> None:
            raise OSError(24, "Too many open files")

        patch.setattr(files, "open", open_file)
        for entry in (FIRST, SECOND, THIRD)[len(written) :]:
            with pytest.raises(OSError, match="Too many open files"):
                index.append(entry)
    index.truncate_to(kept[-1].last_offset + 1)
    assert transaction_index(files).entries == list(written)
    index.append(THIRD)
    assert index.entries == transaction_index(files).entries == [*kept, THIRD]
