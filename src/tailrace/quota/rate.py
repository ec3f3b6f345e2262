"""Rate and TokenBucket: the two measures that quotas are compared with, as Kafka's metrics compute them.

A Rate is a sum over a window that slides in steps. Values go into the current sample; one that is as old as a step is
followed by the next, and there is one sample more than steps, since the oldest may overlap the window's edge.

    quota.window.num = 3, quota.window.size.seconds = 1:

        │ sample │ sample │ sample │ current ··│  now        rate = sum / (now - start of the oldest sample),
        └ overlaps the edge                    ┘                    which counts as (3 - 1) steps at least

So a client that begins may use at once what it may use in (num - 1) steps.

A TokenBucket fills at the quota's rate and holds num steps' worth. It may go below zero by whatever was asked last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Windows(NamedTuple):
    """How a rate is averaged: over so many steps of that length."""

    samples: int = 11
    size_ms: int = 1_000

    @property
    def span_ms(self) -> int:
        return self.samples * self.size_ms


@dataclass(slots=True)
class _Sample:
    start_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Observed(NamedTuple):
    per_second: float
    window_ms: int  # over which that is


class Rate:
    __slots__ = ("_current", "_samples", "_windows", "last_ms")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms, now_ms)]
        self._current = 0
        self.last_ms = now_ms  # when something was last recorded

    def record(self, value: float, now_ms: int) -> None:
        """Count a value; a negative one takes back what was counted."""
        self.last_ms = now_ms
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def observe(self, now_ms: int) -> Observed:
        """The rate as of now. Samples without an event within the window count no more."""
        samples, size_ms = self._windows
        expired_ms = now_ms - samples * size_ms
        total, oldest_ms = 0.0, now_ms
        for sample in self._samples:
            if sample.last_ms <= expired_ms:
                sample.reset(now_ms)
            total += sample.value
            oldest_ms = min(oldest_ms, sample.start_ms)
        window_ms = self._window_ms(now_ms - oldest_ms)
        return Observed(total / (window_ms / 1_000), window_ms)

    def _window_ms(self, elapsed_ms: int) -> int:
        samples, size_ms = self._windows
        return max(elapsed_ms + max(samples - 1 - elapsed_ms // size_ms, 0) * size_ms, 1)

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._windows.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]


class SimpleRate(Rate):
    """A Rate over the time that has passed since its oldest sample began, one step at least: nothing comes for free."""

    __slots__ = ()

    def _window_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._windows.size_ms)


class TokenBucket:
    __slots__ = ("_windows", "last_ms", "tokens")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self.tokens = 0.0  # as of `last_ms`
        self.last_ms = 0  # so that the first look finds it full

    def fill(self, per_second: float, now_ms: int) -> None:
        """Add what has come in since the last time."""
        full = self._windows.samples * (self._windows.size_ms / 1_000) * per_second
        self.tokens = min(full, self.tokens + per_second * ((now_ms - self.last_ms) / 1_000))
        self.last_ms = now_ms

    def take(self, tokens: float, per_second: float, now_ms: int) -> None:
        self.fill(per_second, now_ms)
        self.tokens -= tokens
