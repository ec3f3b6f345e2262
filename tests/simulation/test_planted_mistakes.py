"""The simulation finds each planted bug within a few schedules, most of them in the first schedule.

python -m tests.simulation.run --mistakes        # prints the seed and the failure for each bug
"""

from __future__ import annotations

import pytest

from tests.simulation.mistakes import MISTAKES, RARE
from tests.simulation.run import first_failure

SCHEDULES = 250


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [one for one in MISTAKES if one not in RARE])
def test_a_planted_bug_is_found(mistake: str) -> None:
    _, seed, failure = first_failure(mistake, range(SCHEDULES), 6_000)
    assert seed is not None
    assert failure.startswith(("AssertionError", "CorruptBatch")), failure  # CorruptBatch: a log cannot be read
