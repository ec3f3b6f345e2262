"""Family: one metric with its kind, its help text and its samples.

Samples are made while they are written. A family of ten thousand partitions is therefore never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from tailrace.metrics.histogram import SECOND_NS, Histogram

Labels: TypeAlias = Mapping[str, str]
NO_LABELS: Final[Labels] = {}


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    INFO = "info"


class Sample(NamedTuple):
    labels: Labels
    value: float
    suffix: str = ""  # appended to the family's name: _bucket, _sum, _count


class Family(NamedTuple):
    name: str  # of a counter without _total, of an info without _info
    kind: Kind
    help: str
    samples: Iterable[Sample]


def gauge(name: str, help_text: str, value: float) -> Family:
    return Family(name, Kind.GAUGE, help_text, [Sample(NO_LABELS, value)])


def counter(name: str, help_text: str, value: float) -> Family:
    return Family(name, Kind.COUNTER, help_text, [Sample(NO_LABELS, value)])


def histogram_samples(
    histogram: Histogram, labels: Labels, *, unit: int = SECOND_NS, zeros: int = 0
) -> Iterable[Sample]:
    """Return the samples of buckets, sum and count. Recorded values are divided by `unit` for the output. `zeros` is
    the number of zero values that were not added, because there are too many of them."""
    below = zeros
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        below += count
        yield Sample({**labels, "le": repr(bound / unit)}, below, "_bucket")
    below += histogram.counts[-1]
    yield Sample({**labels, "le": "+Inf"}, below, "_bucket")
    yield Sample(labels, histogram.total / unit, "_sum")
    yield Sample(labels, below, "_count")


def summary_samples(
    quantiles: Sequence[tuple[float, float]], labels: Labels, *, count: int, total: float
) -> Iterable[Sample]:
    for share, value in quantiles:
        yield Sample({**labels, "quantile": repr(share)}, value)
    yield Sample(labels, total, "_sum")
    yield Sample(labels, count, "_count")
