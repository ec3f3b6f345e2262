"""Timers: they come in order, move, and can be forgotten."""

from __future__ import annotations

from random import Random

from tailrace.coordinator.timers import Timers


def due(timers: Timers, now_ms: int) -> list[object]:
    found = []
    while (one := timers.take_due(now_ms)) is not None:
        found.append(one.key)
    return found


def nothing(_: int) -> None:
    return None


def test_a_timer_that_is_rescheduled_later_is_due_at_its_new_time() -> None:
    timers = Timers()
    timers.schedule("a", 10, nothing)
    timers.schedule("a", 30, nothing)
    assert due(timers, 29) == []
    assert timers.next_deadline_ms() == 30
    assert due(timers, 30) == ["a"]
    assert len(timers) == 0


def test_a_timer_that_is_rescheduled_earlier_is_due_once() -> None:
    timers = Timers()
    timers.schedule("a", 30, nothing)
    timers.schedule("a", 10, nothing)
    assert due(timers, 10) == ["a"]
    assert due(timers, 100) == []


def test_timers_behave_like_a_plain_dictionary() -> None:
    for seed in range(50):
        random = Random(seed)
        timers = Timers()
        model: dict[int, int] = {}
        now_ms = 0
        for _ in range(300):
            key = random.randrange(8)
            if random.random() < 0.6:
                model[key] = now_ms + random.randrange(1, 50)
                timers.schedule(key, model[key], nothing)
            elif random.random() < 0.3:
                model.pop(key, None)
                timers.cancel(key)
            else:
                now_ms += random.randrange(20)
                found = due(timers, now_ms)
                expected = [key for key, deadline in model.items() if deadline <= now_ms]
                assert sorted(found) == sorted(expected)  # type: ignore[type-var]
                model = {key: deadline for key, deadline in model.items() if deadline > now_ms}
            first = timers.next_deadline_ms()
            assert (first is None) == (not model)
            assert first is None or first <= min(model.values())
