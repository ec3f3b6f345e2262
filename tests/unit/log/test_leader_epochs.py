"""L11: leader epochs, their file, and where two logs diverge."""

from __future__ import annotations

import pytest

from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.leader_epochs import EpochEnd, EpochStart, LeaderEpochs
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, new_files

PATH = f"{FOLDER}/leader-epoch-checkpoint"
END = 100


def leader_epochs(*entries: tuple[int, int], files: MemoryFiles | None = None) -> LeaderEpochs:
    epochs = LeaderEpochs(files or new_files(), PATH)
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def starts(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    return [tuple(entry) for entry in epochs.entries]


def test_l1_the_epoch_file_has_a_version_a_count_and_a_line_per_epoch() -> None:
    files = new_files()
    leader_epochs((0, 0), (4, 1170), files=files)
    assert files.read(PATH) == b"0\n2\n0 0\n4 1170\n"


def test_l11_a_new_epoch_is_written_at_once_and_a_known_one_is_not() -> None:
    files = new_files()
    epochs = leader_epochs((3, 10), files=files)
    files.remove(PATH)
    epochs.assign(3, 10)
    epochs.assign(3, 50)
    assert not files.exists(PATH)
    epochs.assign(4, 51)
    assert files.read(PATH) == b"0\n2\n3 10\n4 51\n"


def test_l11_entries_that_contradict_a_new_epoch_are_removed() -> None:
    assert starts(leader_epochs((1, 10), (2, 20), (3, 30), (2, 25))) == [(1, 10), (2, 25)]
    assert starts(leader_epochs((1, 10), (2, 20), (3, 30), (4, 15))) == [(1, 10), (4, 15)]
    assert starts(leader_epochs((1, 10), (0, 5))) == [(0, 5)]
    assert starts(leader_epochs((1, 10), (1, 5))) == [(1, 5)]


def test_a_written_epoch_file_is_read_back() -> None:
    files = new_files()
    leader_epochs((0, 0), (4, 1170), files=files)
    again = LeaderEpochs(files, PATH)
    again.load()
    assert (again.earliest, again.latest) == (EpochStart(0, 0), EpochStart(4, 1170))


@pytest.mark.parametrize("text", [b"", b"0\n0\n"])
def test_an_epoch_file_without_entries_has_no_epochs(text: bytes) -> None:
    files = new_files()
    files.write(PATH, text, sync=False)
    epochs = LeaderEpochs(files, PATH)
    epochs.load()
    assert epochs.entries == []
    assert epochs.earliest is epochs.latest is None


@pytest.mark.parametrize("text", [b"0\n1\n5\n", b"0\n1\n5 x\n", b"0\n1\n5 6 7\n", b"0\n2\n5 6\n"])
def test_the_error_of_a_malformed_epoch_file_names_the_file(text: bytes) -> None:
    files = new_files()
    files.write(PATH, text, sync=False)
    with pytest.raises(CorruptCheckpoint, match="leader-epoch-checkpoint"):
        LeaderEpochs(files, PATH).load()


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 20)),
        (2, (1, 20)),
        (3, (1, 20)),
        (4, (4, 30)),
        (5, (5, END)),
        (6, (-1, -1)),
    ],
)
def test_l11_an_epoch_ends_where_the_next_higher_one_starts(epoch: int, end: tuple[int, int]) -> None:
    assert leader_epochs((1, 10), (4, 20), (5, 30)).end_of(epoch, END) == EpochEnd(*end)


def test_without_entries_no_end_is_known() -> None:
    assert leader_epochs().end_of(0, END) == EpochEnd(-1, -1)


@pytest.mark.parametrize(
    ("offset", "left"),
    [(31, [(1, 10), (4, 20), (5, 30)]), (30, [(1, 10), (4, 20)]), (11, [(1, 10)]), (10, []), (0, [])],
)
def test_l11_truncating_the_end_drops_epochs_that_start_there(offset: int, left: list[tuple[int, int]]) -> None:
    epochs = leader_epochs((1, 10), (4, 20), (5, 30))
    assert epochs.truncate_end(offset) == (len(left) < 3)
    assert starts(epochs) == left


@pytest.mark.parametrize(
    ("offset", "left", "changed"),
    [
        (5, [(1, 10), (4, 20), (5, 30)], False),
        (10, [(1, 10), (4, 20), (5, 30)], False),
        (15, [(1, 15), (4, 20), (5, 30)], True),
        (20, [(4, 20), (5, 30)], True),
        (29, [(4, 29), (5, 30)], True),
        (99, [(5, 99)], True),
    ],
)
def test_l11_truncating_the_start_moves_the_epoch_that_covers_it(
    offset: int, left: list[tuple[int, int]], changed: bool
) -> None:
    epochs = leader_epochs((1, 10), (4, 20), (5, 30))
    assert epochs.truncate_start(offset) == changed
    assert starts(epochs) == left


def test_truncated_epochs_are_not_written_until_the_caller_writes_them() -> None:
    files = new_files()
    epochs = leader_epochs((1, 10), (4, 20), files=files)
    before = files.read(PATH)
    epochs.truncate_end(15)
    epochs.truncate_start(12)
    assert files.read(PATH) == before
    epochs.write()
    assert files.read(PATH) == b"0\n1\n1 12\n"


def test_clear_writes_an_empty_list() -> None:
    files = new_files()
    leader_epochs((1, 10), files=files).clear()
    assert files.read(PATH) == b"0\n0\n"


def test_a_negative_epoch_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="invalid leader epoch -1"):
        leader_epochs((-1, 0))
