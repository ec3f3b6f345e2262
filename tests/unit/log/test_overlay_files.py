"""OverlayFiles reads the disk and keeps every change to itself."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from tailrace.log.disk.files import WHOLE_BYTES_MAX, DiskFiles, Entry
from tailrace.log.disk.overlay_files import OverlayFiles


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "log").write_bytes(bytes(range(100)))
    (tmp_path / "small").write_bytes(b"small")
    return str(tmp_path)


def on_disk(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_an_unchanged_file_is_read_from_the_disk_and_grows_with_it(folder: str) -> None:
    files = OverlayFiles(DiskFiles())
    file = files.open(f"{folder}/log")
    assert (file.size(), file.read(10, 3), files.size(f"{folder}/log")) == (100, b"\x0a\x0b\x0c", 100)
    with open(f"{folder}/log", "ab") as more:
        more.write(b"more")
    assert (file.size(), file.read(98, 10)) == (104, b"\x62\x63more")


def test_writes_truncations_renames_and_removals_stay_in_memory(folder: str) -> None:
    before = on_disk(folder)
    files = OverlayFiles(DiskFiles())
    file = files.open(f"{folder}/log")
    file.truncate(50)
    file.write(40, b"x" * 5)
    file.write(55, b"end")
    files.replace(f"{folder}/small", f"{folder}/renamed")
    files.write(f"{folder}/new", b"new", sync=True)
    assert files.remove(f"{folder}/new")
    assert not files.remove(f"{folder}/new")
    files.write(f"{folder}/other", b"other", sync=False)
    assert file.read(0, 1000) == bytes(range(40)) + b"x" * 5 + bytes(range(45, 50)) + bytes(5) + b"end"
    assert files.read(f"{folder}/renamed") == b"small"
    assert not files.exists(f"{folder}/small")
    assert sorted(entry.name for entry in files.entries(folder)) == ["log", "other", "renamed"]
    with pytest.raises(FileNotFoundError):
        files.read(f"{folder}/small")
    with pytest.raises(FileNotFoundError):
        files.open(f"{folder}/small")
    assert on_disk(folder) == before


def test_an_open_file_stays_valid_when_it_is_renamed(folder: str) -> None:
    files = OverlayFiles(DiskFiles())
    file = files.open(f"{folder}/small")
    files.replace(f"{folder}/small", f"{folder}/other")
    file.write(0, b"S")
    assert files.read(f"{folder}/other") == b"Small"
    file.release()
    assert file.read(0, 5) == b"Small"


def test_changed_content_is_read_into_a_buffer(folder: str) -> None:
    file = OverlayFiles(DiskFiles()).open(f"{folder}/log")
    buffer = bytearray(4)
    assert file.read_into(0, memoryview(buffer)) == 4
    assert bytes(buffer) == b"\0\1\2\3"
    file.truncate(2)
    assert file.read_into(1, memoryview(buffer)) == 1
    assert bytes(buffer[:1]) == b"\1"


def test_a_mapped_file_is_a_copy_with_its_zeros(tmp_path: Path) -> None:
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(b"\1" * 16 + bytes(3_000_000))
    mapped = OverlayFiles(DiskFiles()).open(str(index)).map()
    index.write_bytes(b"")  # a running broker cuts it: a mapping would fault
    assert len(mapped) == 3_000_016
    assert bytes(mapped[:20]) == b"\1" * 16 + bytes(4)


def test_memory_is_bounded(folder: str) -> None:
    files = OverlayFiles(DiskFiles(), max_memory=1000)
    file = files.open(f"{folder}/log")
    file.write(100, bytes(900))
    with pytest.raises(OSError, match="1000 bytes"):
        file.write(1000, bytes(101))
    assert file.size() == 1000


def test_the_content_of_a_broken_file_is_counted_but_not_kept(folder: str) -> None:
    files = OverlayFiles(DiskFiles(), max_memory=1000)
    copy = files.open(f"{folder}/log.broken", create=True)
    for position in range(0, 10_000, 1000):
        copy.write(position, bytes(1000))
    assert copy.size() == 10_000


def test_folders_are_created_renamed_and_removed_in_memory(folder: str) -> None:
    (Path(folder) / "topic-0").mkdir()
    (Path(folder) / "topic-0" / "file").write_bytes(b"1")
    files = OverlayFiles(DiskFiles())
    files.replace(f"{folder}/topic-0", f"{folder}/topic-0.id-delete")
    files.make_directory(f"{folder}/made")
    assert files.read(f"{folder}/topic-0.id-delete/file") == b"1"
    assert not files.exists(f"{folder}/topic-0")
    assert Entry("made", True) in files.entries(folder)
    files.remove_directory(f"{folder}/topic-0.id-delete")
    assert sorted(entry.name for entry in files.entries(folder)) == ["log", "made", "small"]
    assert (Path(folder) / "topic-0" / "file").read_bytes() == b"1"


def test_a_file_can_be_hidden_from_the_start(folder: str) -> None:
    files = OverlayFiles(DiskFiles(), without=[f"{folder}/small"])
    assert not files.exists(f"{folder}/small")
    assert not files.fresh().exists(f"{folder}/small")


def test_changes_list_the_writes_that_the_disk_would_have_seen(folder: str) -> None:
    files = OverlayFiles(DiskFiles())
    files.open(f"{folder}/log").truncate(60)
    files.replace(f"{folder}/small", f"{folder}/moved")
    files.write(f"{folder}/new", b"new", sync=True)
    (Path(folder) / "gone").write_bytes(b"123")
    files.remove(f"{folder}/gone")
    (Path(folder) / "same").write_bytes(b"same")
    files.write(f"{folder}/same", b"same", sync=True)
    (Path(folder) / "other").write_bytes(b"other")
    files.write(f"{folder}/other", b"OTHER!", sync=True)
    reported = {Path(change.path).name: change for change in files.changes()}
    assert {name: change.what for name, change in reported.items()} == {
        "log": "cut",
        "moved": "renamed",
        "new": "created",
        "gone": "removed",
        "other": "rewritten",
    }
    assert (reported["log"].size_before, reported["log"].size) == (100, 60)
    assert reported["moved"].renamed_from == f"{folder}/small"


def test_the_zeros_of_a_large_index_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(b"entry")
    os.truncate(path, 1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    content = OverlayFiles(DiskFiles()).open(str(path)).map()
    assert (len(content), bytes(content[:6])) == (1 << 30, b"entry\0")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB


def test_a_file_that_is_read_whole_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.touch()
    os.truncate(path, WHOLE_BYTES_MAX + 1)
    for files in (DiskFiles(), OverlayFiles(DiskFiles())):
        with pytest.raises(OSError, match="the limit is 268,435,456"):
            files.read(str(path))
