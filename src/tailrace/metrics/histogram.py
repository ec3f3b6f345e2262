"""Histogram: counts of values by bucket.

Adding a value costs a binary search and two additions. Counts only grow. For a recent interval, keep a copy of the
counts and subtract it (`RecentCounts`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

SECOND_NS: Final = 1_000_000_000

# From 50 µs, the time of a tiny request, to 60 s, with about three bounds per power of ten.
TIME_BOUNDS_NS: Final = (
    50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000,
    100_000_000, 200_000_000, 500_000_000,
    1_000_000_000, 2_000_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000, 60_000_000_000,
)  # fmt: skip


class Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int] = TIME_BOUNDS_NS) -> None:
        self.bounds = bounds
        # per bound, the values above the previous bound; then the values above all
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0  # the sum of the values

    def add(self, value: int) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add_lowest(self, value: int) -> None:
        """Add a value below the first bound to the sum only, to save the search. Its count is the total count of
        another histogram minus this one's."""
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


def quantile(bounds: Sequence[int], counts: Sequence[int], share: float) -> float | None:
    """Return the value that `share` of the values do not exceed, interpolated within its bucket. None without
    values."""
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    for index, count in enumerate(counts[:-1]):
        if below + count >= wanted:
            low = bounds[index - 1] if index else 0
            return low + (bounds[index] - low) * (wanted - below) / count
        below += count
    return float(bounds[-1])  # the last bucket has no upper bound


class RecentCounts:
    """The counts of the last one to two windows, or since the call before the last if calls are rarer."""

    __slots__ = ("_at_current_window", "_at_previous_window", "_histogram", "_since_ms", "_window_ms")

    def __init__(self, histogram: Histogram, window_ms: int = 60_000) -> None:
        self._histogram = histogram
        self._window_ms = window_ms
        self._since_ms: int | None = None
        self._at_previous_window = [0] * len(histogram.counts)
        self._at_current_window = self._at_previous_window

    def counts(self, now_ms: int) -> list[int]:
        """Return the counts of the values that were added since the previous window began."""
        if self._since_ms is None or now_ms - self._since_ms >= self._window_ms:
            self._at_previous_window, self._at_current_window = self._at_current_window, list(self._histogram.counts)
            self._since_ms = now_ms
        return [now - before for now, before in zip(self._histogram.counts, self._at_previous_window, strict=True)]
