"""After a crash at any point: a prefix of what was appended, never shorter than what was flushed, all else in step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash.driven_log import Driver
from tests.crash.exploration import explore, some_states
from tests.crash.scenarios import LATE_SCENARIOS, SCENARIOS, fill

SEED = 20_261
ALL = [*SCENARIOS, *(pytest.param(one, marks=pytest.mark.slow) for one in LATE_SCENARIOS)]


@pytest.mark.parametrize("one_in", [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(4, id="some")])
@pytest.mark.parametrize("scenario", [*SCENARIOS, *LATE_SCENARIOS], ids=lambda scenario: scenario.__name__)
def test_every_crash_state_is_recovered(scenario: Callable[[], Driver], one_in: int) -> None:
    explored = explore(scenario(), seed=SEED, one_in=one_in)
    assert explored.states > explored.points


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.__name__)
def test_a_crash_during_or_after_recovery_is_recovered(scenario: Callable[[], Driver]) -> None:
    first = scenario()
    for files, expected in some_states(first, seed=SEED, count=2):
        second = Driver(first.config, files, expected)
        for partition in list(second.directory.logs):
            fill(second, partition, 2, mark="y", leader_epoch=8)
            second.change(partition, lambda log: log.flush(log.durability.last_flush_ms))
            fill(second, partition, 1, mark="z", leader_epoch=8)
        explore(second, seed=SEED)
