"""Steps: work that can pause. It is a generator, and `now_ms = yield` returns the current time when the work
resumes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeAlias, TypeVar

ITEMS_PER_STEP: Final = 256  # simple items that are handled between two pauses
R = TypeVar("R")
T = TypeVar("T")
Steps: TypeAlias = Generator[None, int, R]


def in_pieces(work: Callable[[Sequence[T]], object], items: Sequence[T], size: int) -> Steps[None]:
    """Call a function with `size` items at a time, and pause between the calls. For few items call the function
    directly."""
    for first in range(0, len(items), size):
        if first:
            yield
        work(items[first : first + size])


def run_steps(steps: Steps[R], now_ms: int) -> R:
    """Run all steps without a pause."""
    try:
        next(steps)
        while True:
            steps.send(now_ms)
    except StopIteration as end:
        result: R = end.value
        return result
