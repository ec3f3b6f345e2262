"""TimedParts: one part that fails does not keep the others from their work, nor the loop busy."""

from __future__ import annotations

import logging

import pytest

from tailrace.broker.handling.timed_parts import PAUSE_MS, TimedParts
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.model.errors import FatalError


def parts() -> tuple[TimedParts, InternalErrors]:
    errors = InternalErrors(logging.getLogger("tailrace.test"))
    return TimedParts(errors), errors


def broken(now_ms: int) -> None:
    raise RuntimeError("broken")


def test_a_part_that_raises_pauses_and_the_others_continue() -> None:
    timed, errors = parts()
    ticks: list[int] = []
    timed.add("broken", broken, lambda: 0)
    timed.add("sound", ticks.append, lambda: 10_000)
    timed.tick(100)
    assert ticks == [100]
    assert errors.counts == {"broken": 1}
    assert timed.next_deadline_ms() == 100 + PAUSE_MS
    timed.tick(200)
    assert errors.counts == {"broken": 1}
    timed.tick(100 + PAUSE_MS)
    assert errors.counts == {"broken": 2}
    assert ticks == [100, 200, 100 + PAUSE_MS]


def test_a_fatal_error_of_a_part_ends_the_tick() -> None:
    timed, _ = parts()

    def fail(now_ms: int) -> None:
        raise FatalError("the metadata log is gone")

    timed.add("housekeeping", fail, lambda: None)
    with pytest.raises(FatalError):
        timed.tick(0)
