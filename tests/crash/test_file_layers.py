"""The file layers of the crash tests behave as the disk does, and rebuild the crash states they should."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tailrace.log.disk.files import DiskFiles, File, Files, write_atomically
from tests.support.crash_states import (
    DROPPED,
    KEPT,
    Fate,
    apply_data,
    crash_points,
    torn_fates,
)
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles
from tests.support.recording_files import RecordingFiles, Write

NAMES = ["a", "b", "sub/a", "sub/b"]


class Workbench:
    """Files below a root, and the ones opened so far."""

    def __init__(self, files: Files, root: str) -> None:
        self.files = files
        self.root = root
        self.opened: list[File] = []

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"


def random_step(rng: Random) -> Callable[[Workbench], object]:
    name, position, size, create = rng.choice(NAMES), rng.randrange(40), rng.randrange(40), rng.random() < 0.6
    beside = name[:-1] + rng.choice("ab")
    data, which = rng.randbytes(size), rng.random()

    def open_one(bench: Workbench) -> None:
        bench.opened.append(bench.files.open(bench.path(name), create=create))

    def one_opened(act: Callable[[File], object]) -> Callable[[Workbench], object]:
        return lambda bench: act(bench.opened[int(which * len(bench.opened))]) if bench.opened else None

    return rng.choice(
        [
            open_one,
            lambda bench: bench.files.write(bench.path(name), data, sync=True),
            lambda bench: bench.files.replace(bench.path(name), bench.path(beside)),
            lambda bench: bench.files.remove(bench.path(name)),
            lambda bench: bench.files.make_directory(bench.path("sub")),
            lambda bench: bench.files.remove_directory(bench.path("sub")),
            lambda bench: sorted(bench.files.entries(bench.path("sub"))),
            lambda bench: bench.files.exists(bench.path(name)),
            lambda bench: bench.files.size(bench.path(name)),
            lambda bench: bench.files.read(bench.path(name)),
            lambda bench: bench.files.sync_directory(bench.path("sub")),
            one_opened(lambda file: file.write(position, data)),
            one_opened(lambda file: file.truncate(size)),
            one_opened(lambda file: file.allocate(size + 1)),
            one_opened(lambda file: file.read(position, size)),
            one_opened(lambda file: file.read_into(position, memoryview(bytearray(size + 1)))),
            one_opened(lambda file: bytes(file.map())),
            one_opened(lambda file: file.size()),
            one_opened(lambda file: file.sync()),
            one_opened(lambda file: file.release()),
        ]
    )


def outcome(step: Callable[[Workbench], object], bench: Workbench) -> object:
    """Return a result, or the kind of the error."""
    try:
        return step(bench)
    except OSError as error:
        return type(error), error.errno


@pytest.mark.parametrize("layer", [MemoryFiles, RecordingFiles, lambda: FaultyFiles(MemoryFiles())])
@pytest.mark.parametrize("seed", range(10))
def test_a_layer_in_memory_behaves_like_the_disk(layer: Callable[[], Files], seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    disk, memory = Workbench(DiskFiles(), str(tmp_path)), Workbench(layer(), "/d")
    memory.files.make_directory("/d")
    for _ in range(300):
        step = random_step(rng)
        assert outcome(step, disk) == outcome(step, memory)
    for file in disk.opened:
        file.close()


def test_a_lock_is_held_once() -> None:
    files = MemoryFiles()
    held = files.lock("/lock")
    with pytest.raises(BlockingIOError):
        files.lock("/lock")
    held.close()
    files.lock("/lock").close()


def trees(files: RecordingFiles, index: int) -> list[dict[str, bytes]]:
    """Return all distinct states of a crash after `index` operations without torn writes."""
    (point,) = [point for point in crash_points(files) if point.index == index]
    found: list[dict[str, bytes]] = []
    for mask in range(2 ** len(point.pending)):
        fates = {i: DROPPED for bit, (i, _) in enumerate(point.pending) if mask >> bit & 1}
        state = point.state(fates)
        if state.tree not in found:
            found.append(state.tree)
    return found


def test_unsynced_writes_are_dropped_and_reordered() -> None:
    files = RecordingFiles()
    file = files.open("/f", create=True)
    files.sync_directory("/")
    file.write(0, b"one")
    file.sync()
    file.write(3, b"two")
    file.write(6, b"six")
    contents = {tree["f"] for tree in trees(files, len(files.trace))}
    assert contents == {b"one", b"onetwo", b"onetwosix", b"one\0\0\0six"}


def test_a_synced_file_without_a_synced_name_may_vanish() -> None:
    files = RecordingFiles()
    files.write("/f", b"data", sync=True)
    assert trees(files, len(files.trace)) == [{"f": b"data"}, {}]
    files.sync_directory("/")
    assert trees(files, len(files.trace)) == [{"f": b"data"}]


def test_a_renamed_file_may_lack_its_unsynced_content() -> None:
    files = RecordingFiles()
    files.write("/f", b"old", sync=True)
    files.sync_directory("/")
    files.write("/f.tmp", b"new", sync=False)
    files.replace("/f.tmp", "/f")
    found = trees(files, len(files.trace))
    assert {"f": b""} in found
    assert {"f": b"old"} in found
    assert {"f": b"new"} in found


def test_an_atomic_write_leaves_the_old_or_the_new() -> None:
    files = RecordingFiles()
    files.write("/f", b"old", sync=True)
    files.sync_directory("/")
    start = len(files.trace)
    write_atomically(files, "/f", b"new")
    for index in range(start, len(files.trace) + 1):
        assert {tree["f"] for tree in trees(files, index)} <= {b"old", b"new"}
    assert {tree["f"] for tree in trees(files, len(files.trace))} == {b"new"}


def test_changes_of_a_folder_persist_in_any_order() -> None:
    files = RecordingFiles()
    for name in "ab":
        files.write(f"/{name}", b"", sync=True)
    files.sync_directory("/")
    files.remove("/a")
    files.remove("/b")
    assert {tuple(tree) for tree in trees(files, len(files.trace))} == {("a", "b"), ("a",), ("b",), ()}


def test_a_renamed_folder_keeps_its_files() -> None:
    files = RecordingFiles()
    files.make_directory("/t-0")
    files.write("/t-0/f", b"x", sync=True)
    files.sync_directory("/t-0")
    files.sync_directory("/")
    files.replace("/t-0", "/t-0-delete")
    assert trees(files, len(files.trace)) == [{"t-0-delete/f": b"x"}, {"t-0/f": b"x"}]


def test_a_torn_write_leaves_a_prefix_or_misses_sectors() -> None:
    write = Write(1, 100, bytes(range(1, 201)))
    before = b"\xff" * 120
    contents = {fate: apply_data(before, write, fate) for fate in torn_fates(write)}
    assert contents[Fate("prefix", 0, 1)] == b"\xff" * 100 + b"\x01" + b"\xff" * 19
    assert contents[Fate("zeros")] == before + bytes(180)
    assert len(contents[Fate("garbage")]) == 300
    assert contents[Fate("hole", 92, 156)][192:256] == bytes(64)
    assert apply_data(before, write, KEPT) not in contents.values()
    assert len(torn_fates(write, every_byte=True)) > 200


def test_a_write_to_a_full_disk_keeps_the_bytes_that_fit() -> None:
    files = FaultyFiles(MemoryFiles())
    file = files.open("/f", create=True)
    files.free_bytes = 5
    with pytest.raises(OSError, match="/f") as failure:
        file.write(0, b"12345678")
    assert failure.value.errno == errno.ENOSPC
    assert files.read("/f") == b"12345"
    file.truncate(2)
    file.write(2, b"abc")
    assert files.read("/f") == b"12abc"


def test_a_fault_affects_the_chosen_path_the_chosen_number_of_times() -> None:
    files = FaultyFiles(MemoryFiles())
    files.write("/a.index", b"x", sync=True)
    files.write("/a.log", b"y", sync=True)
    files.fail("read", errno.EIO, path=".index", skip=1, times=1)
    assert files.read("/a.index") == b"x"
    with pytest.raises(OSError, match=r"a\.index"):
        files.read("/a.index")
    assert files.read("/a.index") == b"x"
    assert files.read("/a.log") == b"y"
