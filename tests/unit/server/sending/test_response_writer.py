"""Responses leave whole and in order, however little a socket takes at a time."""

from __future__ import annotations

import random
import socket as sockets
from pathlib import Path
from typing import Any

import pytest

from tailrace.broker.requests.request_context import Part
from tailrace.log.disk.files import DiskFiles, File
from tailrace.log.segments.position import FileSlice
from tailrace.model.system_calls import lacks
from tailrace.server.sending.response_writer import SEND_BYTES_MAX, ResponseWriter
from tailrace.server.sending.slice_sender import SliceGone, SliceSender
from tailrace.server.settings import SliceStrategy
from tests.support.memory_files import MemoryFiles
from tests.unit.server.harness import framed


class Socket:
    """A socket's sending half: takes at most `room` bytes, then would block."""

    def __init__(self, room: int = 10**9) -> None:
        self.room = room
        self.taken = bytearray()
        self.calls = 0
        self.more: list[bool] = []

    def send(self, data: Any) -> int:
        return self.sendmsg([data])

    def sendmsg(self, buffers: list[Any], ancillary: Any = (), flags: int = 0) -> int:
        self.calls += 1
        self.more.append(bool(flags))
        data = b"".join(buffers)[: self.room]
        if not data and any(map(len, buffers)):
            raise BlockingIOError
        self.taken += data
        self.room -= len(data)
        return len(data)


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def memory_file(data: bytes) -> File:
    file = MemoryFiles().open("f", create=True)
    file.write(0, data)
    return file


FILE = memory_file(content(3_000_000))


def sent(parts: list[Part]) -> bytes:
    return framed(b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts))


def test_a_response_is_its_size_and_its_parts() -> None:
    writer, socket = ResponseWriter(), Socket()
    writer.add([b"head", bytearray(b"body"), memoryview(b"tail")])
    assert writer.size == 16
    assert writer.send(socket, SliceSender(SliceStrategy.PREAD)) == 16  # type: ignore[arg-type]
    assert socket.taken == b"\0\0\0\x0cheadbodytail"
    assert writer.size == 0


def test_responses_that_are_ready_together_are_sent_with_one_call() -> None:
    writer, socket = ResponseWriter(), Socket()
    for number in range(100):
        writer.add([b"%d" % number])
    writer.send(socket, SliceSender(SliceStrategy.PREAD))  # type: ignore[arg-type]
    assert socket.taken == framed(*(b"%d" % number for number in range(100)))
    assert socket.calls == 1


def test_small_slices_are_sent_with_the_bytes_around_them() -> None:
    writer, socket = ResponseWriter(), Socket()
    parts: list[Part] = [b"a", FileSlice(FILE, 5, 10), b"b", FileSlice(FILE, 100, 2000), b"c", FileSlice(FILE, 0, 0)]
    writer.add(parts)
    writer.send(socket, SliceSender(SliceStrategy.PREAD))  # type: ignore[arg-type]
    assert socket.taken == sent(parts)
    assert socket.calls == 1


@pytest.mark.skipif(lacks(sockets, "MSG_MORE"), reason="this system has no MSG_MORE")
def test_bytes_before_a_large_slice_are_sent_with_msg_more() -> None:
    writer, socket = ResponseWriter(), Socket()
    parts: list[Part] = [b"head", FileSlice(FILE, 0, 100_000)]
    writer.add(parts)
    writer.send(socket, SliceSender(SliceStrategy.PREAD))  # type: ignore[arg-type]
    assert socket.taken == sent(parts)
    assert socket.more == [True, False]


def test_any_response_arrives_whole_through_a_socket_that_takes_little() -> None:
    dice = random.Random(3)
    slices = SliceSender(SliceStrategy.PREAD)
    for _ in range(150):
        writer, socket, wanted = ResponseWriter(), Socket(0), b""
        for _ in range(dice.randrange(1, 4)):
            parts: list[Part] = []
            for _ in range(dice.randrange(5)):
                size = dice.choice((0, 1, 50, 3000, 32_768, 32_769, 70_000, 300_000))
                position = dice.randrange(3_000_000 - size)
                parts.append(FileSlice(FILE, position, size) if dice.random() < 0.6 else content(size))
            writer.add(parts)
            wanted += sent(parts)
        while writer.size:
            before = len(socket.taken)
            socket.room = dice.choice((0, 1, 7, 1000, 65_536, 200_000))
            assert writer.send(socket, slices) == len(socket.taken) - before  # type: ignore[arg-type]
            assert writer.size == len(wanted) - len(socket.taken)
        assert socket.taken == wanted


def test_many_small_slices_are_not_all_read_ahead_of_a_slow_reader() -> None:
    reads = []

    class Watched:
        path = "f"

        def read(self, position: int, size: int) -> bytes:
            reads.append(size)
            return FILE.read(position, size)

        def fileno(self) -> int:
            raise OSError

    writer, socket = ResponseWriter(), Socket(1000)
    writer.add([FileSlice(Watched(), 0, 10_000) for _ in range(200)])  # type: ignore[arg-type]
    writer.send(socket, SliceSender(SliceStrategy.PREAD))  # type: ignore[arg-type]
    assert 0 < sum(reads) <= 65_536


def test_one_call_sends_at_most_its_limit() -> None:
    writer, socket = ResponseWriter(), Socket()
    writer.add([FileSlice(FILE, 0, 2_900_000), FileSlice(FILE, 0, 2_900_000)])
    assert writer.send(socket, SliceSender(SliceStrategy.PREAD)) == SEND_BYTES_MAX  # type: ignore[arg-type]


def test_a_file_that_has_become_too_short_is_an_error() -> None:
    for size in (1000, 100_000):
        writer = ResponseWriter()
        writer.add([FileSlice(memory_file(b"x" * (size - 1)), 0, size)])
        with pytest.raises(SliceGone, match="f ends"):
            writer.send(Socket(), SliceSender(SliceStrategy.PREAD))  # type: ignore[arg-type]


def test_a_slice_that_waits_keeps_its_file(tmp_path: Path) -> None:
    """The segment is closed and removed while a slow reader is at it."""
    path = tmp_path / "segment"
    data = content(300_000)
    path.write_bytes(data)
    file = DiskFiles().open(str(path), read_only=True)
    slices = SliceSender(SliceStrategy.PREAD)
    writer, socket = ResponseWriter(), Socket(50_000)
    writer.add([FileSlice(file, 0, 200_000), b"between", FileSlice(file, 200_000, 100), FileSlice(file, 0, 70_000)])
    writer.send(socket, slices)  # type: ignore[arg-type]
    assert slices.pins == 3
    file.close()
    path.unlink()
    while writer.size:
        socket.room = 50_000
        writer.send(socket, slices)  # type: ignore[arg-type]
    assert socket.taken == framed(data[:200_000] + b"between" + data[200_000:200_100] + data[:70_000])
    assert slices.pins == 0


def test_a_cleared_writer_unpins_its_files(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(content(200_000))
    slices = SliceSender(SliceStrategy.PREAD)
    writer = ResponseWriter()
    writer.add([b"head", FileSlice(DiskFiles().open(str(path), read_only=True), 0, 200_000)])
    writer.send(Socket(10), slices)  # type: ignore[arg-type]
    assert slices.pins == 1
    writer.clear(slices)
    assert slices.pins == 0
    assert writer.size == 0
