"""Opening a log to look at it: the bounds and transactions that a broker would have, and not a byte changed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.directories.data_directory import PartitionFolder, read_data_directory
from tailrace.log.disk.files import DiskFile, DiskFiles, Entry
from tailrace.log.inspect.offline import Unopenable, open_bounds, open_exact
from tailrace.log.watermarks import Isolation
from tests.support.batches import batch
from tests.support.command import contents, write_directory
from tests.support.golden import golden, golden_names
from tests.support.our_directory import aborted_of, open_golden, read_all

NOW_MS = 1_700_000_100_000
FILES = DiskFiles()


def folder_of(path: Path, **facts: Any) -> PartitionFolder:
    return PartitionFolder(str(path), read_data_directory(FILES, str(path)).folders[0].partition, **facts)


def unpacked(name: str, tmp_path: Path) -> PartitionFolder:
    directory = golden(name)
    path = directory.unpack(tmp_path / name) / "topic-0"
    return folder_of(path, log_start_offset=directory.manifest["open"]["log_start_offset"])


@pytest.mark.parametrize("name", golden_names("partition"))
def test_exact_bounds_are_those_that_recovery_gives(name: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    before = contents(tmp_path)
    offline = open_exact(FILES, folder, NOW_MS)
    assert contents(tmp_path) == before
    opened = open_golden(golden(name), golden(name).unpack(tmp_path / "opened") / "topic-0")
    opened.advance_high_watermark(opened.log_end_offset)
    if name == "crashed-bad-crc":
        # Only the checksum is wrong: who looks at the log does not check it, and reads on behind the batch.
        assert offline.log.log_end_offset == 99 > opened.log_end_offset
        return
    assert (offline.log.log_start_offset, offline.log.log_end_offset, offline.log.last_stable_offset) == (
        opened.log_start_offset,
        opened.log_end_offset,
        opened.last_stable_offset,
    )
    assert aborted_of(offline.log) == aborted_of(opened)
    assert read_all(offline.log, Isolation.READ_COMMITTED) == read_all(opened, Isolation.READ_COMMITTED)


@pytest.mark.parametrize("name", golden_names("partition"))
def test_bounds_alone_are_found_without_changing_anything(name: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    before = contents(tmp_path)
    offline = open_bounds(FILES, folder, NOW_MS)
    exact = open_exact(FILES, folder, NOW_MS)
    assert (offline.log.log_start_offset, offline.log.log_end_offset) == (
        exact.log.log_start_offset,
        exact.log.log_end_offset,
    )
    assert contents(tmp_path) == before


class CountingFiles(DiskFiles):
    """Notes how much of which log file is read."""

    def __init__(self) -> None:
        self.bytes_read = 0

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> DiskFile:
        assert read_only, f"{path} is opened for writing"
        counting = self

        class CountingFile(DiskFile):
            __slots__ = ()

            def read(self, position: int, size: int) -> bytes:
                data = super().read(position, size)
                counting.bytes_read += len(data) if self.path.endswith(".log") else 0
                return data

        file = super().open(path, read_only=True)
        return CountingFile(file.path, file._flags)


def test_bounds_are_found_without_reading_segments(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "transactions") / "transactions-0"
    size = sum(file.stat().st_size for file in path.glob("*.log"))
    files = CountingFiles()
    open_bounds(files, folder_of(path), NOW_MS)
    assert 0 < files.bytes_read < size / 4


def test_a_checkpoint_past_the_end_is_reported_and_ignored(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    for open_it in (open_bounds, open_exact):
        offline = open_it(FILES, folder_of(path, log_start_offset=10_000), NOW_MS)
        assert offline.log.log_start_offset == 0
        assert offline.log.log_end_offset > 100
        assert any("before the log start offset 10000" in finding.message for finding in offline.findings)


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata"])
def test_a_log_is_opened_despite_a_corrupt_small_file(name: str, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    (path / name).write_bytes(b"\xff\x00 what is this")
    for open_it in (open_bounds, open_exact):
        offline = open_it(FILES, folder_of(path), NOW_MS)
        assert offline.log.log_end_offset > 100
        assert [Path(finding.path).name for finding in offline.findings] == [name]


@pytest.mark.parametrize("damage", [b"", b"\x00" * 7, b"\x7f" * 24, b"\xff" * 24])
def test_the_log_end_is_found_despite_a_damaged_last_index(damage: bytes, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    expected = open_bounds(FILES, folder_of(path), NOW_MS).log.log_end_offset
    max(path.glob("*.index")).write_bytes(damage)
    offline = open_bounds(FILES, folder_of(path), NOW_MS)
    assert offline.log.log_end_offset == expected
    assert bool(offline.findings) is bool(damage)


def test_a_torn_tail_is_left_out_and_reported(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    expected = open_bounds(FILES, folder_of(path), NOW_MS).log.log_end_offset
    last = max(path.glob("*.log"))
    size = last.stat().st_size
    with open(last, "ab") as log:
        log.write(b"\x00" * 7 + b"torn")
    for open_it in (open_bounds, open_exact):
        offline = open_it(FILES, folder_of(path), NOW_MS)
        assert offline.log.log_end_offset == expected
        assert offline.log.segments.active.size == size
        assert any(str(size) in str(finding) for finding in offline.findings)


def test_the_high_watermark_is_that_of_the_checkpoint(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    assert open_bounds(FILES, folder_of(path, high_watermark=50), NOW_MS).log.high_watermark == 50
    log = open_bounds(FILES, folder_of(path), NOW_MS).log
    assert log.high_watermark == log.log_end_offset


class VanishingFiles(DiskFiles):
    """Lists a segment that is gone each time it is opened, for a number of times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def entries(self, path: str) -> list[Entry]:
        self.times -= 1
        found = super().entries(path)
        return [*found, Entry("00000000000000000900.log", False)] if self.times >= 0 else found


def test_a_file_that_vanishes_between_listing_and_opening_does_not_matter(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    expected = open_bounds(FILES, folder_of(path), NOW_MS).log.log_end_offset
    assert open_bounds(VanishingFiles(2), folder_of(path), NOW_MS).log.log_end_offset == expected
    with pytest.raises(Unopenable, match="was removed"):
        open_bounds(VanishingFiles(100), folder_of(path), NOW_MS)


def test_opening_a_missing_folder_does_not_create_it(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    folder = folder_of(path)
    path.rename(path.with_name("other-0"))
    with pytest.raises(Unopenable):
        open_exact(FILES, folder, NOW_MS)
    assert not path.exists()


class GrowingFiles(DiskFiles):
    """The files of a running broker: after each query of the log's size, another batch and its index entry are
    appended."""

    def __init__(self, log: Path, batches: Iterator[bytes]) -> None:
        self.log, self.batches = log, batches

    def size(self, path: str) -> int:
        size = super().size(path)
        if path == str(self.log):
            self.grow()
        return size

    def grow(self) -> None:
        position = self.log.stat().st_size
        data = next(self.batches)
        with open(self.log, "ab") as log:
            log.write(data)
        with open(self.log.with_suffix(".index"), "ab") as index:
            last_offset = int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big")
            index.write(struct.pack(">ii", last_offset - int(self.log.stem), position))


@pytest.mark.parametrize("open_it", [open_bounds, open_exact])
def test_a_log_that_grows_while_it_is_opened_has_one_of_its_ends(open_it: Any, tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    end = open_bounds(FILES, folder_of(path), NOW_MS).log.log_end_offset
    batches = (bytes(batch(b"x", base_offset=n)) for n in count(end))
    offline = open_it(GrowingFiles(max(path.glob("*.log")), batches), folder_of(path), NOW_MS)
    assert end <= offline.log.log_end_offset <= int.from_bytes(next(batches)[:8], "big")
    assert offline.findings == []
    assert read_all(offline.log)
