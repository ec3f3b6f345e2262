"""The schedules of `test_replication.py` under our own controller. It crashes, loses power, is slow, and gets requests
never or twice.
"""

from __future__ import annotations

import pytest

from tailrace.model.errors import ErrorCode
from tests.simulation.real_controller import RealController
from tests.simulation.watched import Watched, simulate


def crashes(watched: Watched) -> int:
    controller = watched.cluster.controller
    assert isinstance(controller, RealController)
    return controller.crashes


@pytest.mark.parametrize("seed", [0, 1])
def test_committed_records_survive_under_our_controller(seed: int) -> None:
    watched = simulate(seed, 4_000, RealController)
    assert watched.consumed > 50
    assert watched.answered[ErrorCode.NONE] > 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5_000, 5_200, 20))
def test_many_schedules_under_our_controller_have_no_failure(first: int) -> None:
    found = 0
    for seed in range(first, first + 20):
        try:
            found += crashes(simulate(seed, 10_000, RealController))
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    assert found > 20
