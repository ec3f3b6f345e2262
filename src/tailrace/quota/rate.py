"""Rate and TokenBucket: the two measurements that quotas are compared with, computed as Kafka's metrics do.

A Rate is a sum over a window that slides in steps. Values are added to the current sample. When the current sample is
as old as a step, the next sample begins. There is one sample more than steps, because the oldest may overlap the
window's edge.

    quota.window.num = 3, quota.window.size.seconds = 1:

        │ sample │ sample │ sample │ current ··│  now        rate = sum / (now - start of the oldest sample),
        └ overlaps the edge                    ┘                    which counts as (3 - 1) steps at least

A new client may therefore use the quota of (num - 1) steps at once.

A TokenBucket fills at the quota's rate and holds the tokens of num steps. The last request may take it below zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Windows(NamedTuple):
    """The window over which a rate is averaged: a number of steps and their length."""

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


class ObservedRate(NamedTuple):
    per_second: float
    window_ms: int  # the length of the window of this rate


class Rate:
    __slots__ = ("_current", "_samples", "_windows", "last_ms")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms, now_ms)]
        self._current = 0
        self.last_ms = now_ms  # the time of the last recorded value

    def record(self, value: float, now_ms: int) -> None:
        """Add a value. A negative value reverses an earlier one."""
        self.last_ms = now_ms
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def observe(self, now_ms: int) -> ObservedRate:
        """Return the current rate. Samples whose last value is older than the window are not counted."""
        samples, size_ms = self._windows
        expired_ms = now_ms - samples * size_ms
        total, oldest_ms = 0.0, now_ms
        for sample in self._samples:
            if sample.last_ms <= expired_ms:
                sample.reset(now_ms)
            total += sample.value
            oldest_ms = min(oldest_ms, sample.start_ms)
        window_ms = self._window_ms(now_ms - oldest_ms)
        return ObservedRate(total / (window_ms / 1_000), window_ms)

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
    """A Rate over the time since the start of its oldest sample, at least one step. A new client gets no
    initial burst."""

    __slots__ = ()

    def _window_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._windows.size_ms)


class TokenBucket:
    __slots__ = ("_windows", "last_ms", "tokens")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self.tokens = 0.0  # at `last_ms`
        self.last_ms = 0  # the first call of `fill` finds the bucket full

    def fill(self, per_second: float, now_ms: int) -> None:
        """Add the tokens of the time since the last call."""
        full = self._windows.samples * (self._windows.size_ms / 1_000) * per_second
        self.tokens = min(full, self.tokens + per_second * ((now_ms - self.last_ms) / 1_000))
        self.last_ms = now_ms

    def take(self, tokens: float, per_second: float, now_ms: int) -> None:
        self.fill(per_second, now_ms)
        self.tokens -= tokens
