"""Steps: work that can pause. It is a generator, and `now_ms = yield` gives it the present time when it resumes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

ITEMS_A_STEP: Final = 256  # simple items that are handled between two pauses
R = TypeVar("R")
Steps: TypeAlias = Generator[None, int, R]


def run_steps(steps: Steps[R], now_ms: int) -> R:
    """Do all of the work without a pause."""
    try:
        next(steps)
        while True:
            steps.send(now_ms)
    except StopIteration as end:
        result: R = end.value
        return result
