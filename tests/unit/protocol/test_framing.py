"""Frames out of chunks, and never more memory than bytes that came."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from tailrace.protocol.framing import FrameBuffer, InvalidFrame, frame_length


def taken(buffer: FrameBuffer) -> list[bytes]:
    frames = []
    while (frame := buffer.next_frame()) is not None:
        frames.append(frame)
    return frames


def test_frames_come_whole_however_they_are_cut() -> None:
    contents = [b"", b"a", b"bc" * 50, b"", b"d" * 1000]
    stream = b"".join(frame_length([content]) + content for content in contents)
    dice = random.Random(1)
    for _ in range(200):
        buffer, frames, position = FrameBuffer(limit=1000), [], 0
        while position < len(stream):
            step = dice.choice((1, 2, 3, 7, 100, 5000))
            buffer.receive(memoryview(stream)[position : position + step])
            position += step
            frames += taken(buffer)
        assert frames == contents
        assert len(buffer) == 0


def test_a_frame_is_a_copy() -> None:
    buffer = FrameBuffer()
    chunk = bytearray(b"\0\0\0\2ab\0\0\0\2cd")
    buffer.receive(chunk)
    first = buffer.next_frame()
    buffer.receive(b"\0\0\0\0")
    assert (first, taken(buffer)) == (b"ab", [b"cd", b""])


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\x03\xe9", b"\x7f\xff\xff\xff"])
def test_a_length_that_cannot_be_right_is_final(length: bytes) -> None:
    buffer = FrameBuffer(limit=1000)
    buffer.receive(b"\0\0\0\1x" + length)
    assert buffer.next_frame() == b"x"  # what came before it is still served
    for _ in range(2):
        with pytest.raises(InvalidFrame, match="0 to 1000 are allowed"):
            buffer.next_frame()
        buffer.receive(b"\0\0\0\0")


def test_an_announced_frame_costs_nothing_until_it_comes() -> None:
    tracemalloc.start()
    try:
        buffer = FrameBuffer()
        buffer.receive((100_000_000).to_bytes(4, "big"))
        assert buffer.next_frame() is None
        buffer.receive(b"x" * 1000)
        assert buffer.next_frame() is None
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_what_has_been_taken_is_let_go() -> None:
    buffer = FrameBuffer()
    for _ in range(100):
        buffer.receive(b"\0\0\0\x64" + b"x" * 100 + b"\0\0")
        assert buffer.next_frame() == b"x" * 100
        buffer.receive(b"\0\0")
        assert buffer.next_frame() == b""
        assert len(buffer) == 0
    assert len(buffer._buffer) < 300


def test_the_length_of_a_frame_counts_all_its_parts() -> None:
    class FileSlice:
        def __len__(self) -> int:
            return 1000

    assert frame_length([b"abc", FileSlice(), memoryview(b"de")]) == (1005).to_bytes(4, "big")
