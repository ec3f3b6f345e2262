"""Buckets, quantiles and recent counts."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tailrace.metrics.histogram import Histogram, RecentCounts, quantile


def test_a_value_equal_to_a_bound_is_in_its_bucket() -> None:
    histogram = Histogram((10, 20))
    for value in (0, 10, 11, 20, 21, 1_000):
        histogram.add(value)
    assert histogram.counts == [2, 2, 2]
    assert (histogram.count, histogram.total) == (6, 1_062)


@given(st.lists(st.integers(0, 99), min_size=1), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_an_estimated_quantile_lies_in_the_bucket_of_the_exact_one(values: list[int], share: float) -> None:
    bounds = tuple(range(9, 100, 10))
    histogram = Histogram(bounds)
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    true = ordered[max(math.ceil(len(ordered) * share), 1) - 1]
    guessed = quantile(bounds, histogram.counts, share)
    assert guessed is not None
    low = next((bound for bound in reversed(bounds) if bound < true), 0)
    high = next(bound for bound in bounds if bound >= true)
    assert low <= guessed <= high


def test_a_quantile_is_none_without_values_and_at_most_the_last_bound() -> None:
    assert quantile((1, 2), (0, 0, 0), 0.5) is None
    assert quantile((1, 2), (0, 0, 7), 0.5) == 2


def test_recent_counts_drop_values_older_than_two_windows() -> None:
    histogram = Histogram((10,))
    recent = RecentCounts(histogram, window_ms=1_000)
    histogram.add(1)
    assert recent.counts(0) == [1, 0]  # the first call returns all values
    histogram.add(99)
    assert recent.counts(1_000) == [0, 1]
    histogram.add(99)
    assert recent.counts(1_999) == [0, 2]
    assert recent.counts(2_000) == [0, 1]
    assert recent.counts(3_000) == [0, 0]
