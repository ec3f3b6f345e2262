"""Memory that is used again, unless somebody still looks at it."""

from __future__ import annotations

from tailrace.server.receiving.receive_buffers import (
    ARENA_BYTES,
    FULL_POSITION,
    POOLED_BYTES,
    POOLED_COUNT,
    READ_BYTES_MAX,
    FrameBuffers,
    ReceiveArena,
)


def address(view: memoryview) -> int:
    return id(view.obj)


def test_an_arena_starts_again_in_the_same_memory() -> None:
    arena = ReceiveArena()
    before = address(arena.view)
    arena.position = 1000
    arena.view[:3] = b"abc"
    arena.recycle()
    assert (arena.position, address(arena.view), arena.replaced) == (0, before, 0)


def test_an_arena_with_a_kept_view_is_replaced() -> None:
    arena = ReceiveArena()
    arena.view[:3] = b"abc"
    kept = arena.view[1:3]
    arena.recycle()
    arena.view[:3] = b"xyz"
    assert bytes(kept) == b"bc"
    assert arena.replaced == 1


def test_an_arena_is_reused_after_its_views_are_released() -> None:
    arena = ReceiveArena()
    before = address(arena.view)
    kept = arena.view[1:3]
    del kept
    arena.recycle()
    assert address(arena.view) == before


def test_there_is_room_for_a_read_until_the_arena_is_full() -> None:
    assert FULL_POSITION + READ_BYTES_MAX == ARENA_BYTES


def test_a_buffer_without_views_is_reused() -> None:
    buffers = FrameBuffers()
    first = buffers.take(100_000)
    first[:3] = b"abc"
    place = address(first)
    part = first[1:3]
    del first
    second = buffers.take(200_000)
    assert address(second) != place
    assert bytes(part) == b"bc"
    del part
    assert address(buffers.take(300_000)) == place


def test_buffers_have_the_requested_size_and_are_writable() -> None:
    buffers = FrameBuffers()
    for size in (1, 4096, POOLED_BYTES, POOLED_BYTES + 1, 5_000_000):
        view = buffers.take(size)
        assert len(view) == size
        view[-1] = 7
        assert not view.readonly


def test_many_buffers_in_use_are_different_and_only_a_few_are_kept() -> None:
    buffers = FrameBuffers()
    views = [buffers.take(1000) for _ in range(POOLED_COUNT + 3)]
    for index, view in enumerate(views):
        view[:] = bytes([index]) * 1000
    assert [view[999] for view in views] == list(range(POOLED_COUNT + 3))
    places = {address(view) for view in views}
    views.clear()
    again = [buffers.take(1000) for _ in range(POOLED_COUNT)]
    assert {address(view) for view in again} <= places


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_large_buffer_takes_no_memory_before_it_is_filled() -> None:
    buffers = FrameBuffers()
    before = resident_bytes()
    views = [buffers.take(100_000_000) for _ in range(10)]
    assert resident_bytes() - before < 20_000_000
    assert len(views) == 10
