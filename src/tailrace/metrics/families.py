"""Family: one metric with its kind, its help and its samples.

Samples are made while they are written, so that a family of ten thousand partitions need never be there as a whole.
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
    suffix: str = ""  # behind the family's name: _bucket, _sum, _count


class Family(NamedTuple):
    name: str  # a counter's without its _total, an info's without its _info
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
    """Buckets, sum and count. `unit`: how many of its values make one of what is told; `zeros`: values of 0 that were
    never added because they are so many."""
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
