"""Leaders and followers under random schedules of appends, fetches and faults. The seed of a failing schedule repeats
it.

SEED=17 .venv/bin/python -m pytest tests/simulation/test_replication.py
make simulate SEEDS=0-5000        # many, on all processors
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.model.errors import ErrorCode
from tests.simulation.watched import simulate

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else list(range(12))


@pytest.mark.parametrize("seed", SEEDS)
def test_committed_records_survive_and_replicas_converge(seed: int) -> None:
    watched = simulate(seed, 6_000)
    assert watched.consumed > 50
    assert watched.answered[ErrorCode.NONE] > 5


_REPORT = """
from tests.simulation.watched import simulate
played = [simulate(seed, 2_000) for seed in range(4)]
print([(one.invariants.committed, one.faults, one.random.random()) for one in played])
"""


@pytest.mark.slow
def test_a_seed_plays_the_same_schedule_in_every_process() -> None:
    """The order of sets in a process does not matter."""
    reported = {
        subprocess.run(
            [sys.executable, "-c", _REPORT],
            env={**os.environ, "PYTHONHASHSEED": str(n)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for n in (1, 2)
    }
    assert len(reported) == 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_many_schedules_have_no_failure(first: int) -> None:
    for seed in range(first, first + 50):
        try:
            simulate(seed, 10_000)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
