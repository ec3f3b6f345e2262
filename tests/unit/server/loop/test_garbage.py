"""Garbage: each object is examined once, in small portions; all objects are examined when the broker is idle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.server.loop import garbage
from tailrace.server.loop.garbage import (
    COLLECTION_INTERVAL_MS_MAX,
    IDLE_RETRY_MS,
    OLD_INTERVAL_MS,
    YOUNG_OBJECTS,
    FullCollection,
    examine_objects_once,
)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


class Ring:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def settings() -> Iterator[None]:
    """Change the interpreter's settings as a broker does, and restore them after the test."""
    before = gc.get_threshold()
    examine_objects_once()
    yield
    gc.callbacks.remove(garbage._freeze_after_collection)
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of unused objects that each full collection has found."""
    found: list[int] = []
    collect = gc.collect
    monkeypatch.setattr(garbage.gc, "collect", lambda: found.append(collect()))
    return found


@pytest.mark.usefixtures("settings")
def test_an_object_is_examined_once() -> None:
    looked_at: list[tuple[int, int]] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            looked_at.append((info["generation"], sum(gc.get_count())))

    gc.callbacks.append(note)
    try:
        kept: list[list[int]] = [[] for _ in range(YOUNG_OBJECTS * 20)]
    finally:
        gc.callbacks.remove(note)
    assert len(kept) == YOUNG_OBJECTS * 20
    assert {generation for generation, _ in looked_at} == {0}
    assert len(gc.get_objects()) < 2 * YOUNG_OBJECTS  # what was kept is out of the way


@pytest.mark.usefixtures("settings")
def test_young_reference_cycles_are_freed() -> None:
    before = sum(isinstance(one, Ring) for one in gc.get_objects())
    for _ in range(3 * YOUNG_OBJECTS):
        Ring()
    assert sum(isinstance(one, Ring) for one in gc.get_objects()) - before <= YOUNG_OBJECTS


@pytest.mark.usefixtures("settings")
def test_old_reference_cycles_are_freed_when_the_broker_is_idle(looks: list[int]) -> None:
    clock = Clock()
    old = FullCollection(clock)
    ring = Ring()
    gc.freeze()
    del ring
    clock.now_ms = old.next_deadline_ms() - 1
    old.tick(is_idle=True)
    assert looks == []
    clock.now_ms = old.next_deadline_ms()
    old.tick(is_idle=True)
    assert looks[0] >= 1
    assert old.next_deadline_ms() == clock.now_ms + OLD_INTERVAL_MS


@pytest.mark.usefixtures("settings")
def test_a_broker_that_is_never_idle_collects_after_the_maximum_interval(looks: list[int]) -> None:
    clock = Clock()
    old = FullCollection(clock)
    began_ms = clock.now_ms
    clock.now_ms = old.next_deadline_ms()
    old.tick(is_idle=False)
    assert (looks, old.next_deadline_ms()) == ([], clock.now_ms + IDLE_RETRY_MS)
    clock.now_ms = began_ms + COLLECTION_INTERVAL_MS_MAX
    old.tick(is_idle=False)
    assert len(looks) == 1
