"""Steps: work that can pause. It is a generator, and `now_ms = yield` gives it the present time when it resumes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeAlias, TypeVar

ITEMS_A_STEP: Final = 256  # simple items that are handled between two pauses
R = TypeVar("R")
T = TypeVar("T")
Steps: TypeAlias = Generator[None, int, R]


def in_pieces(work: Callable[[Sequence[T]], object], items: Sequence[T], size: int) -> Steps[None]:
    """Give items to a function, `size` at a time, and pause in between. Few items need no steps: call the function."""
    for first in range(0, len(items), size):
        if first:
            yield
        work(items[first : first + size])


def run_steps(steps: Steps[R], now_ms: int) -> R:
    """Do all of the work without a pause."""
    try:
        next(steps)
        while True:
            steps.send(now_ms)
    except StopIteration as end:
        result: R = end.value
        return result
