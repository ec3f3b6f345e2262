"""Operations that Kafka once did, replayed on our log, give the same results and the same bytes in every file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tests.support.golden import golden, golden_names
from tests.support.replay import Replay

CLEAN = [name for name in golden_names("partition") if golden(name).manifest["ended"] == "clean"]
CRASHED = [
    name
    for name in golden_names("partition")
    if golden(name).manifest["ended"] == "crashed" and not golden(name).manifest["changes"]
]
SPARSE_INDEXES = (file_names.OFFSET_INDEX, file_names.TIME_INDEX)


def content(folder: Path) -> dict[str, bytes]:
    """Return every file's bytes, except those of indexes that are being deleted, which may be written or not."""
    return {path.name: b"" if path.name.endswith("index.deleted") else path.read_bytes() for path in folder.iterdir()}


def replayed(name: str, folder: Path) -> dict[str, bytes]:
    Replay(DiskFiles(), str(folder)).run(golden(name).manifest["steps"])
    return content(folder)


def assert_same_files(mine: dict[str, bytes], theirs: dict[str, bytes]) -> None:
    assert sorted(mine) == sorted(theirs)
    for name in theirs:
        assert mine[name].hex(" ") == theirs[name].hex(" "), name


@pytest.mark.parametrize("name", CLEAN)
def test_the_same_steps_leave_the_same_files(name: str, tmp_path: Path) -> None:
    theirs = content(golden(name).unpack(tmp_path / "kafka") / "topic-0")
    mine = replayed(name, tmp_path / "topic-0")
    assert_same_files(mine, theirs)


@pytest.mark.parametrize("name", CRASHED)
def test_a_crash_after_the_same_steps_leaves_the_same_files_but_the_active_indexes(name: str, tmp_path: Path) -> None:
    """Indexes of active segments are hints that neither side has written out: Kafka's are preallocated, ours in
    memory."""
    theirs = content(golden(name).unpack(tmp_path / "kafka") / "topic-0")
    mine = replayed(name, tmp_path / "topic-0")
    active = max(path for path in theirs if path.endswith(file_names.LOG)).removesuffix(file_names.LOG)
    for kind in SPARSE_INDEXES:
        del mine[active + kind], theirs[active + kind]
    assert_same_files(mine, theirs)


def test_there_are_directories_to_replay() -> None:
    assert len(CLEAN) >= 16
    assert CRASHED == ["crashed", "crashed-before-deletion", "crashed-preallocated"]
