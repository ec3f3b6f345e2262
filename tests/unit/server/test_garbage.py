"""Garbage: young objects are looked at in small portions, old ones by the loop, and seldom if that takes long."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tailrace.server import garbage
from tailrace.server.garbage import OLD_INTERVAL_MS_MIN, OLD_PORTIONS, YOUNG_OBJECTS, OldGarbage, collect_in_portions


class Clock:
    """A clock that passes `step_ms` each time it is asked."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.step_ms = 0

    def __call__(self) -> int:
        self.now_ms += self.step_ms
        return self.now_ms


class Ring:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    collect_in_portions()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of objects that full collections have found."""
    found: list[int] = []
    full_collection = gc.collect
    monkeypatch.setattr(garbage.gc, "get_count", lambda: (0, 0, OLD_PORTIONS))
    monkeypatch.setattr(garbage.gc, "collect", lambda: found.append(full_collection()))
    return found


@pytest.mark.usefixtures("thresholds")
def test_old_objects_are_not_looked_at_while_requests_make_young_ones() -> None:
    seen: list[int] = []
    gc.callbacks.append(lambda phase, info: seen.append(info["generation"]) if phase == "start" else None)
    try:
        kept = [[] for _ in range(YOUNG_OBJECTS * 60)]  # type: ignore[var-annotated]
    finally:
        gc.callbacks.pop()
    assert len(kept) == YOUNG_OBJECTS * 60
    assert seen
    assert 2 not in seen


def test_the_loop_finds_old_garbage_when_it_is_time(collections: list[int]) -> None:
    clock = Clock()
    old = OldGarbage(clock)
    Ring()
    clock.now_ms = old.next_deadline_ms() - 1
    old.tick()
    assert collections == []
    clock.now_ms = old.next_deadline_ms()
    old.tick()
    assert len(collections) == 1
    assert collections[0] >= 1
    assert old.next_deadline_ms() == clock.now_ms + OLD_INTERVAL_MS_MIN


def test_a_long_collection_is_not_repeated_soon(collections: list[int]) -> None:
    clock = Clock()
    old = OldGarbage(clock)
    clock.now_ms = old.next_deadline_ms()
    clock.step_ms = 500
    old.tick()
    assert len(collections) == 1
    assert old.next_deadline_ms() - clock.now_ms == 500 * 1_000


@pytest.mark.usefixtures("thresholds")
def test_nothing_is_collected_where_nothing_has_become_old(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    old = OldGarbage(clock)
    monkeypatch.setattr(garbage.gc, "get_count", lambda: (0, 0, OLD_PORTIONS - 1))
    monkeypatch.setattr(garbage.gc, "collect", lambda: pytest.fail("there is nothing to collect"))
    clock.now_ms = old.next_deadline_ms()
    old.tick()
    assert old.next_deadline_ms() > clock.now_ms
