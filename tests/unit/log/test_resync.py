"""Behind damage, the next batch shows itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.resync import next_position
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tests.support.batches import batch


def write(path: Path, *parts: bytes) -> list[int]:
    """Write the parts one after another. Return the position of each."""
    path.write_bytes(b"".join(parts))
    return [sum(len(part) for part in parts[:n]) for n in range(len(parts))]


@pytest.mark.long
def test_the_next_intact_batch_is_found_at_any_byte(tmp_path: Path) -> None:
    good = batch(b"a", base_offset=7)
    for junk in (b"", b"\x02" * 40, bytes(5000), b"\x00\x02" * 700_000):
        starts = write(tmp_path / "log", b"xx", junk, bytes(good), bytes(batch(b"b", base_offset=8)))
        file = DiskFiles().open(str(tmp_path / "log"))
        assert next_position(file, 0, file.size(), 5, None) == starts[2]
        assert next_position(file, starts[2], file.size(), 5, None) == starts[3]
        assert next_position(file, starts[3], file.size(), 5, None) is None


def test_a_batch_with_an_earlier_offset_or_a_torn_batch_is_not_found(tmp_path: Path) -> None:
    old, torn = bytes(batch(b"a", base_offset=3)), bytes(batch(b"b", base_offset=9))[:-1]
    write(tmp_path / "log", b"x", old, torn)
    file = DiskFiles().open(str(tmp_path / "log"))
    assert next_position(file, 0, file.size(), 5, None) is None


def test_without_an_intact_batch_the_search_ends_at_the_next_index_entry(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(1000))
    (tmp_path / "index").write_bytes(bytes.fromhex("0000000500000100") + bytes.fromhex("0000000900000200"))
    file = DiskFiles().open(str(tmp_path / "log"))
    index = OffsetIndex(DiskFiles(), str(tmp_path / "index"), 0, 1000)
    assert next_position(file, 0, 1000, 0, index) == 256
    assert next_position(file, 256, 1000, 0, index) == 512
    assert next_position(file, 512, 1000, 0, index) is None
