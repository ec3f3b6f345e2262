"""After a crash at any point: a prefix of what was appended, never shorter than what was flushed, all else in step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash.driven_log import Driver
from tests.crash.exploration import explore
from tests.crash.scenarios import SCENARIOS

SEED = 20_261


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_recovery_from_every_crash_state(scenario: Callable[[], Driver]) -> None:
    explored = explore(scenario(), seed=SEED)
    assert explored.states > explored.points
