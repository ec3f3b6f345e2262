"""Limits of one input: CPU seconds of this process, and bytes at its peak.

Time is the processor's, not the wall's, so that a busy machine makes no input fail. Memory is the rise of the process's
highest resident size, which the first inputs determine.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CPU_SECONDS_MAX = 5.0
GROWTH_BYTES_MAX = 400 * 1024 * 1024


class InvariantBroken(Exception):
    """An input made the program do what it must never do."""


class TooLong(InvariantBroken):
    """An input took more of the processor than any may."""


class TooLarge(InvariantBroken):
    """An input took more memory than any may."""


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def limited(cpu_seconds: float = CPU_SECONDS_MAX, growth_bytes: int = GROWTH_BYTES_MAX) -> Iterator[None]:
    """Fail what takes longer or more."""

    def strike(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {cpu_seconds} s of processor time")

    before = _peak_bytes()
    previous = signal.signal(signal.SIGVTALRM, strike)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    growth = _peak_bytes() - before
    if growth > growth_bytes:
        raise TooLarge(f"{growth} bytes more than before")
