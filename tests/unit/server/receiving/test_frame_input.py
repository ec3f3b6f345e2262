"""Frames out of a stream, whatever pieces it comes in and whenever the arena starts again."""

from __future__ import annotations

import random
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.protocol.framing import InvalidFrame
from tailrace.server.receiving.frame_input import SMALL_FRAME_BYTES, FrameInput
from tailrace.server.receiving.receive_buffers import FULL_POSITION, READ_BYTES_MAX, FrameBuffers, ReceiveArena
from tests.unit.server.harness import framed

LIMIT = 10_000_000


class Stream:
    """A socket's receiving half: returns at most the next of its pieces at a time."""

    def __init__(self, data: bytes, pieces: list[int]) -> None:
        self.data = memoryview(data)
        self.pieces = pieces
        self.position = 0
        self.calls = 0

    def recv_into(self, buffer: memoryview) -> int:
        self.calls += 1
        assert len(buffer), "a read of nothing looks like the end of the stream"
        if self.position == len(self.data):
            raise BlockingIOError
        piece = self.pieces[self.calls % len(self.pieces)]
        count = min(len(buffer), piece, len(self.data) - self.position)
        buffer[:count] = self.data[self.position : self.position + count]
        self.position += count
        return count


def receive_all(frames: FrameInput, arena: ReceiveArena, stream: Stream) -> list[bytes]:
    """Receive like the loop: read when there is no frame, start the arena again when it is full."""
    received = []
    while True:
        while (frame := frames.next_frame()) is not None:
            received.append(bytes(frame))
        if arena.position > FULL_POSITION:
            frames.keep(arena)
            frame = None
            arena.recycle()
        try:
            frames.receive(stream.recv_into, arena)
        except BlockingIOError:
            return received


sizes = st.one_of(
    st.integers(0, 300),
    st.sampled_from([SMALL_FRAME_BYTES - 1, SMALL_FRAME_BYTES, SMALL_FRAME_BYTES + 1, READ_BYTES_MAX, 200_000]),
)


@settings(deadline=None)
@given(
    st.lists(sizes, max_size=12),
    st.lists(st.sampled_from([1, 2, 3, 5, 100, 4096, 30_000, READ_BYTES_MAX, 10**6]), min_size=1, max_size=5),
)
def test_frames_are_returned_whole_and_in_order(lengths: list[int], pieces: list[int]) -> None:
    dice = random.Random(1)
    if max(pieces) < 100:  # byte by byte, small frames have to do
        lengths = [length % 1000 for length in lengths]
    contents = [dice.randbytes(length) for length in lengths]
    frames = FrameInput(LIMIT, FrameBuffers())
    assert receive_all(frames, ReceiveArena(), Stream(framed(*contents), pieces)) == contents
    assert len(frames) == 0


def test_connections_share_an_arena() -> None:
    """The uncut bytes of one connection stay, even if the arena starts again for another."""
    dice = random.Random(2)
    arena, buffers = ReceiveArena(), FrameBuffers()
    wanted = [[dice.randbytes(dice.choice((10, 1000, 20_000, 40_000))) for _ in range(100)] for _ in range(3)]
    inputs = [FrameInput(LIMIT, buffers) for _ in wanted]
    streams = [Stream(framed(*contents), [dice.randrange(1, 90_000) for _ in range(7)]) for contents in wanted]
    received: list[list[bytes]] = [[] for _ in wanted]
    has_uncut = [False] * len(wanted)
    times_kept = 0
    while received != wanted:
        index = dice.randrange(len(wanted))
        frames, stream = inputs[index], streams[index]
        if has_uncut[index]:
            while (frame := frames.next_frame()) is not None:
                received[index].append(bytes(frame))
            has_uncut[index] = False
            continue
        if arena.position > FULL_POSITION:
            times_kept += sum(1 for each in inputs if len(each))
            for each in inputs:
                each.keep(arena)
            arena.recycle()
        if stream.position < len(stream.data):
            frames.receive(stream.recv_into, arena)
            has_uncut[index] = True
    assert times_kept > 10
    assert arena.replaced == 0


def test_small_frames_that_arrive_together_are_read_once_and_not_copied() -> None:
    arena, frames = ReceiveArena(), FrameInput(LIMIT, FrameBuffers())
    stream = Stream(framed(b"one", b"two", b"three"), [10**6])
    frames.receive(stream.recv_into, arena)
    place = id(arena.view.obj)
    cut = [frames.next_frame() for _ in range(4)]
    assert [None if frame is None else bytes(frame) for frame in cut] == [b"one", b"two", b"three", None]
    assert all(frame is None or id(frame.obj) == place for frame in cut)
    assert stream.calls == 1


def test_a_large_frame_is_received_into_its_final_buffer() -> None:
    """In a stream of large frames only the heads go through the arena."""
    arena, frames = ReceiveArena(), FrameInput(LIMIT, FrameBuffers())
    contents = [bytes([number]) * 1_000_000 for number in range(5)]
    stream = Stream(framed(*contents), [10**6])
    assert receive_all(frames, arena, stream) == contents
    assert arena.position < READ_BYTES_MAX + 4 * 5000


def test_a_frame_can_be_written_to() -> None:
    arena, frames = ReceiveArena(), FrameInput(LIMIT, FrameBuffers())
    stream = Stream(framed(b"small", b"l" * 500_000), [10**6])
    frames.receive(stream.recv_into, arena)
    small = frames.next_frame()
    assert small is not None
    small[0] = 0
    assert frames.next_frame() is None
    frames.receive(stream.recv_into, arena)
    large = frames.next_frame()
    assert large is not None
    large[0] = 0


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_an_invalid_size_is_refused_at_every_further_call(size: int) -> None:
    arena, frames = ReceiveArena(), FrameInput(1000, FrameBuffers())
    frames.receive(Stream(framed(b"good") + pack(">i", size) + b"rest", [10**6]).recv_into, arena)
    assert frames.next_frame() == b"good"
    for _ in range(2):
        with pytest.raises(InvalidFrame, match=f"{size} bytes"):
            frames.next_frame()


def test_a_tls_handshake_is_named_in_the_error() -> None:
    arena, frames = ReceiveArena(), FrameInput(1000, FrameBuffers())
    frames.receive(Stream(bytes.fromhex("1603010200010001fc0303"), [10**6]).recv_into, arena)
    with pytest.raises(InvalidFrame, match="a TLS handshake at a listener without TLS"):
        frames.next_frame()


def test_an_invalid_size_after_a_large_frame_is_refused() -> None:
    arena, frames = ReceiveArena(), FrameInput(100_000, FrameBuffers())
    stream = Stream(framed(b"l" * 90_000) + pack(">i", 100_001), [10**6])
    while (frame := frames.next_frame()) is None:
        frames.receive(stream.recv_into, arena)
    assert len(frame) == 90_000
    frames.receive(stream.recv_into, arena)
    with pytest.raises(InvalidFrame):
        frames.next_frame()


def test_frames_of_the_largest_size_and_of_no_bytes_are_returned() -> None:
    arena, frames = ReceiveArena(), FrameInput(1000, FrameBuffers())
    stream = Stream(framed(b"x" * 1000, b""), [10**6])
    assert receive_all(frames, arena, stream) == [b"x" * 1000, b""]


def test_the_end_of_the_stream_is_returned_as_0_bytes() -> None:
    arena, frames = ReceiveArena(), FrameInput(1000, FrameBuffers())
    assert frames.receive(lambda buffer: 0, arena) == 0
    frames.receive(Stream(framed(b"x" * 50_000)[:40_000], [10**6]).recv_into, ReceiveArena())


def test_held_bytes_are_counted() -> None:
    arena, frames = ReceiveArena(), FrameInput(LIMIT, FrameBuffers())
    frames.receive(Stream(framed(b"x" * 200_000)[:5000], [10**6]).recv_into, arena)
    assert len(frames) == 5000
    assert frames.next_frame() is None
    assert len(frames) == 4996
