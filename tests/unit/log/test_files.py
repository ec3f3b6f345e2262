"""The file system that the log sees; the one on disk and the one of the tests behave the same."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles, Entry, Files, join, write_atomically
from tests.support.memory_files import MemoryFiles

Place = tuple[Files, str]


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a file system and an empty folder in it."""
    if request.param == "disk":
        return DiskFiles(), str(tmp_path)
    files = MemoryFiles()
    files.make_directory("/data")
    return files, "/data"


def test_written_bytes_are_read_at_their_positions(place: Place) -> None:
    files, folder = place
    file = files.open(f"{folder}/a", create=True)
    file.write(0, b"0123456789")
    file.write(4, memoryview(b"xy"))
    assert file.size() == 10
    assert file.read(3, 4) == b"3xy6"
    assert file.read(8, 100) == b"89", "fewer only at the end"
    assert file.read(10, 5) == b""
    buffer = bytearray(6)
    assert file.read_into(7, memoryview(buffer)) == 3
    assert buffer == b"789\0\0\0"
    file.close()


def test_writing_past_the_end_leaves_zeros_between(place: Place) -> None:
    files, folder = place
    file = files.open(f"{folder}/a", create=True)
    file.write(3, b"x")
    assert files.read(f"{folder}/a") == b"\0\0\0x"
    file.close()


def test_a_missing_file_raises_at_its_first_use(place: Place) -> None:
    files, folder = place
    file = files.open(f"{folder}/missing")
    with pytest.raises(FileNotFoundError):
        file.read(0, 1)
    for use in (files.size, files.read, files.modified_ms):
        with pytest.raises(FileNotFoundError):
            use(f"{folder}/missing")


def test_truncate_shortens_a_file_and_allocate_only_extends_it(place: Place) -> None:
    files, folder = place
    file = files.open(f"{folder}/a", create=True)
    file.write(0, b"0123456789")
    file.truncate(4)
    assert files.read(f"{folder}/a") == b"0123"
    file.allocate(8)
    assert files.read(f"{folder}/a") == b"0123\0\0\0\0"
    file.allocate(2)
    assert files.size(f"{folder}/a") == 8, "allocating never cuts"
    file.close()


def test_a_map_has_the_content_of_the_whole_file(place: Place) -> None:
    files, folder = place
    files.write(f"{folder}/a", b"0123", sync=False)
    files.write(f"{folder}/empty", b"", sync=False)
    assert bytes(files.open(f"{folder}/a", read_only=True).map()) == b"0123"
    assert bytes(files.open(f"{folder}/empty", read_only=True).map()) == b""


def test_a_released_file_is_opened_again_by_its_path(place: Place) -> None:
    files, folder = place
    file = files.open(f"{folder}/a", create=True)
    file.write(0, b"one")
    file.release()
    files.write(f"{folder}/a", b"two", sync=False)
    assert file.read(0, 3) == b"two"
    file.release()
    files.replace(f"{folder}/a", f"{folder}/b")
    file.path = f"{folder}/b"
    assert file.read(0, 3) == b"two"
    file.release()
    files.remove(f"{folder}/b")
    with pytest.raises(FileNotFoundError):
        file.read(0, 3)


def test_an_open_file_survives_being_renamed_and_removed(place: Place) -> None:
    files, folder = place
    file = files.open(f"{folder}/a", create=True)
    file.write(0, b"data")
    files.replace(f"{folder}/a", f"{folder}/b")
    assert file.read(0, 4) == b"data"
    assert files.remove(f"{folder}/b")
    assert file.read(0, 4) == b"data"
    file.close()


def test_write_replaces_the_whole_content(place: Place) -> None:
    files, folder = place
    files.write(f"{folder}/a", b"longer than before", sync=False)
    files.write(f"{folder}/a", b"short", sync=True)
    assert files.read(f"{folder}/a") == b"short"


def test_replace_overwrites_an_existing_file(place: Place) -> None:
    files, folder = place
    files.write(f"{folder}/a", b"new", sync=False)
    files.write(f"{folder}/b", b"old", sync=False)
    files.replace(f"{folder}/a", f"{folder}/b")
    assert (files.exists(f"{folder}/a"), files.read(f"{folder}/b")) == (False, b"new")


def test_remove_returns_true_if_there_was_a_file(place: Place) -> None:
    files, folder = place
    files.write(f"{folder}/a", b"", sync=False)
    assert files.remove(f"{folder}/a")
    assert not files.remove(f"{folder}/a")


def test_folders_are_created_listed_and_removed(place: Place) -> None:
    files, folder = place
    files.make_directory(f"{folder}/x/y")
    files.make_directory(f"{folder}/x/y")
    files.write(f"{folder}/x/file", b"1", sync=False)
    assert sorted(files.entries(f"{folder}/x")) == [Entry("file", False), Entry("y", True)]
    files.write(f"{folder}/x/y/file", b"1", sync=False)
    files.remove_directory(f"{folder}/x/y")
    assert files.entries(f"{folder}/x") == [Entry("file", False)]
    files.sync_directory(f"{folder}/x")


def test_modification_times_are_set_in_milliseconds(place: Place) -> None:
    files, folder = place
    files.write(f"{folder}/a", b"", sync=False)
    files.set_modified_ms(f"{folder}/a", 1_700_000_000_123)
    assert files.modified_ms(f"{folder}/a") == 1_700_000_000_123


def test_a_file_opened_for_reading_cannot_be_written(place: Place) -> None:
    files, folder = place
    files.write(f"{folder}/a", b"data", sync=False)
    file = files.open(f"{folder}/a", read_only=True)
    assert file.read(0, 4) == b"data"
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write(0, b"x")
    file.close()


def test_a_small_file_is_replaced_atomically(place: Place) -> None:
    files, folder = place
    for content in (b"one", b"two"):
        write_atomically(files, f"{folder}/a", content)
        assert files.read(f"{folder}/a") == content
    assert files.entries(folder) == [Entry("a", False)]


def test_a_released_lock_can_be_taken_again(place: Place) -> None:
    files, folder = place
    files.lock(f"{folder}/.lock").close()
    files.lock(f"{folder}/.lock").close()


def test_a_lock_held_by_another_process_cannot_be_taken(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    script = f"import fcntl,sys; f=open({str(path)!r},'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(1,flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(BlockingIOError):
            DiskFiles().lock(str(path))
        other.communicate(b"\n")
    DiskFiles().lock(str(path)).close()


def test_no_descriptor_is_taken_before_the_first_use(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    before = len(os.listdir("/dev/fd"))
    opened = [DiskFiles().open(str(tmp_path / "a")) for _ in range(20)]
    assert len(os.listdir("/dev/fd")) == before
    assert opened[0].read(0, 4) == b"data"
    opened[0].close()
    assert len(os.listdir("/dev/fd")) == before


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    file = DiskFiles().open(str(tmp_path / "a"), create=True)
    assert fcntl.fcntl(file.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    file.close()


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_partial_read_or_write_of_the_system_is_continued(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(call: Callable[..., object]) -> Callable[..., object]:
        def cut_call(descriptor: int, data: object, position: int) -> object:
            short = data[:chunk] if isinstance(data, bytes | memoryview) else data
            if isinstance(data, int):
                short = min(data, chunk)
            if isinstance(data, list):
                short = [data[0][:chunk]]
            return call(descriptor, short, position)

        return cut_call

    for name in ("pread", "pwrite", "preadv"):
        monkeypatch.setattr(os, name, cut(getattr(os, name)))
    file = DiskFiles().open(str(tmp_path / "a"), create=True)
    file.write(0, b"0123456789")
    assert file.read(0, 10) == b"0123456789"
    assert file.read(5, 100) == b"56789"
    buffer = bytearray(8)
    assert file.read_into(0, memoryview(buffer)) == 8
    assert buffer == b"01234567"
    file.close()


def test_join_adds_slashes_between_the_parts() -> None:
    assert join("/data", "topic-0", "a") == "/data/topic-0/a"


def test_a_dropped_file_object_closes_its_descriptor(tmp_path: Path) -> None:
    file = DiskFiles().open(str(tmp_path / "file"), create=True)
    link = f"/proc/self/fd/{file.fileno()}"
    assert os.readlink(link) == str(tmp_path / "file")
    del file
    assert not os.path.exists(link) or os.readlink(link) != str(tmp_path / "file")


def test_a_pipe_or_device_is_refused_as_a_file_without_waiting(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe", tmp_path / "device"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(OSError, match="not a regular file"):
            DiskFiles().read(str(path))
        with pytest.raises(OSError, match="not a regular file"):
            DiskFiles().open(str(path), read_only=True).size()


def test_removing_a_folder_removes_links_but_not_their_targets(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    folder = tmp_path / "t-0.0-delete"
    (folder / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    DiskFiles().remove_directory(str(folder))
    assert (outside / "kept").exists()
    assert not folder.exists()
