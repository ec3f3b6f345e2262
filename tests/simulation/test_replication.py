"""Leaders and followers under random schedules of appends, fetches and faults; the seed of a failing one repeats it.

SEED=17 .venv/bin/python -m pytest tests/simulation/test_replication.py
make simulate SEEDS=0-5000        # many, on all processors
"""

from __future__ import annotations

import os

import pytest

from tailrace.model.errors import ErrorCode
from tests.simulation.watched import simulate

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(12))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_committed_stays_and_everyone_converges(seed: int) -> None:
    watched = simulate(seed, 6_000)
    assert watched.consumed > 50
    assert watched.answered[ErrorCode.NONE] > 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_many_schedules(first: int) -> None:
    for seed in range(first, first + 50):
        try:
            simulate(seed, 10_000)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
