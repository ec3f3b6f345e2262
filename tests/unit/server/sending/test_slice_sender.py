"""The size of reads, and the pinned files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tailrace.log.disk.files import DiskFiles
from tailrace.log.segments.position import FileSlice
from tailrace.server.sending import slice_sender
from tailrace.server.sending.slice_sender import CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, PendingSlice, SliceSender
from tailrace.server.settings import SliceStrategy
from tests.unit.server.sending.test_response_writer import FILE, Socket


def test_the_size_of_a_read_follows_what_the_socket_takes() -> None:
    slices, pending = SliceSender(SliceStrategy.PREAD), PendingSlice(FileSlice(FILE, 0, 3_000_000))
    given = []
    for room in (10**6, 10**6, 50_000, 10**6, 10, 10**6):
        wanted, taken = slices.send(Socket(room), pending, 10**9)  # type: ignore[arg-type]
        given.append(wanted)
        assert taken == min(wanted, room)
    assert given == [CHUNK_BYTES_MAX, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX, 50_000, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN]


def test_a_slice_is_sent_up_to_the_limit() -> None:
    slices, pending = SliceSender(SliceStrategy.PREAD), PendingSlice(FileSlice(FILE, 0, 3_000_000))
    assert slices.send(Socket(), pending, 10) == (10, 10)  # type: ignore[arg-type]
    assert (pending.position, pending.remaining) == (10, 2_999_990)


def test_pins_are_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(slice_sender.resource, "getrlimit", lambda which: (32, 32))
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 1000)
    file = DiskFiles().open(str(path), read_only=True)
    slices = SliceSender(SliceStrategy.SENDFILE)
    pending = [PendingSlice(FileSlice(file, 0, 1000)) for _ in range(5)]
    for each in pending:
        slices.pin(each)
    assert slices.pins == 2
    for each in pending:
        slices.unpin(each)
    assert slices.pins == 0


def test_a_file_in_memory_needs_no_pin() -> None:
    slices, pending = SliceSender(SliceStrategy.PREAD), PendingSlice(FileSlice(FILE, 0, 1000))
    slices.pin(pending)
    assert slices.pins == 0
    assert len(pending.read()) == 1000
