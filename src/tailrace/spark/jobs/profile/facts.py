"""The counts of a profile. They can be merged: slices into a partition, partitions into a topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WIDTHS_S = (1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400, 604_800, 31_449_600)  # each is a multiple of the previous one
_MOST_BUCKETS = 400
_EXACT_BITS = 7


class SizeHistogram:
    """A histogram of sizes: exact below 128 bytes, with a precision of 1/64 above."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.largest = 0

    def add(self, sizes: Mapping[int, int]) -> None:
        for size, count in sizes.items():
            shift = max(0, size.bit_length() - _EXACT_BITS)
            self.counts[size >> shift << shift] += count
            self.largest = max(self.largest, size)

    def merge(self, other: SizeHistogram) -> None:
        self.counts.update(other.counts)
        self.largest = max(self.largest, other.largest)

    @property
    def total(self) -> int:
        return self.counts.total()

    def quantile(self, share: float) -> int:
        """Return the size that this share does not exceed; 0 if the histogram is empty."""
        wanted = share * self.total
        seen = 0
        for size in sorted(self.counts):
            seen += self.counts[size]
            if seen >= wanted:
                return size
        return self.largest

    def to_json(self) -> dict[str, int]:
        shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
        return {**{name: self.quantile(share) for name, share in shares.items()}, "max": self.largest}


class TimeSeries:
    """Records and bytes over time, in buckets. The buckets become wider as the covered time grows."""

    def __init__(self) -> None:
        self._level = 0
        self.buckets: dict[int, tuple[int, int]] = {}  # number of the bucket → records, bytes

    @property
    def width_s(self) -> int:
        return WIDTHS_S[self._level]

    def add(self, seconds: Iterable[tuple[int, int, int]]) -> None:
        """Add tuples (seconds since 1970, records, bytes)."""
        for second, records, size in seconds:
            before = self.buckets.get(second // self.width_s, (0, 0))
            self.buckets[second // self.width_s] = (before[0] + records, before[1] + size)
            if len(self.buckets) > 2 * _MOST_BUCKETS:
                self._widen(self._level + 1)
        self._bound_buckets()

    def merge(self, other: TimeSeries) -> None:
        if other._level > self._level:
            self._widen(other._level)
        factor = self.width_s // other.width_s
        for number, (records, size) in other.buckets.items():
            before = self.buckets.get(number // factor, (0, 0))
            self.buckets[number // factor] = (before[0] + records, before[1] + size)
        self._bound_buckets()

    def _bound_buckets(self) -> None:
        while len(self.buckets) > _MOST_BUCKETS and self._level < len(WIDTHS_S) - 1:
            self._widen(self._level + 1)

    def _widen(self, level: int) -> None:
        if level >= len(WIDTHS_S):
            return
        factor = WIDTHS_S[level] // self.width_s
        old, self.buckets, self._level = self.buckets, {}, level
        for number, (records, size) in old.items():
            before = self.buckets.get(number // factor, (0, 0))
            self.buckets[number // factor] = (before[0] + records, before[1] + size)

    def to_json(self) -> dict[str, Any]:
        points = [
            {"time": number * self.width_s * 1000, "records": records, "bytes": size}
            for number, (records, size) in sorted(self.buckets.items())
        ]
        return {"bucketSeconds": self.width_s, "points": points}


@dataclass(slots=True)
class CodecFacts:
    batches: int = 0
    bytes: int = 0  # compressed bytes of records
    sampled: int = 0  # compressed bytes of the sampled batches
    sampled_plain: int = 0  # uncompressed bytes of the sampled batches

    def merge(self, other: CodecFacts) -> None:
        self.batches += other.batches
        self.bytes += other.bytes
        self.sampled += other.sampled
        self.sampled_plain += other.sampled_plain

    @property
    def ratio(self) -> float | None:
        """The compression ratio of the sampled batches; None if there are none."""
        return self.sampled_plain / self.sampled if self.sampled else None


@dataclass(slots=True)
class KeyFacts:
    """Statistics of keys. A record is superseded if compaction would remove it: a later one has the same key."""

    records: int = 0  # records with a key
    distinct: int = 0
    superseded: int = 0
    superseded_bytes: int = 0
    tombstones_last: int = 0  # keys whose last record is a tombstone
    top: list[tuple[bytes, int, int]] = field(default_factory=list)  # key, records, bytes

    def merge(self, other: KeyFacts, most: int = 20) -> None:
        """Add the statistics of another partition. A key in both partitions counts twice."""
        self.records += other.records
        self.distinct += other.distinct
        self.superseded += other.superseded
        self.superseded_bytes += other.superseded_bytes
        self.tombstones_last += other.tombstones_last
        self.top = sorted(self.top + other.top, key=lambda one: (-one[1], one[0]))[:most]


@dataclass(slots=True)
class LogFacts:
    """All statistics except those of keys. Merge later offsets into earlier ones."""

    batches: int = 0
    bytes: int = 0
    records: int = 0  # records that a consumer sees
    record_bytes: int = 0  # keys and values
    control_batches: int = 0
    transactional_records: int = 0
    aborted_records: int = 0
    aborted_bytes: int = 0
    tombstones: int = 0
    keyless: int = 0
    out_of_order: int = 0  # records with an earlier timestamp than the previous record
    first_time: int | None = None
    last_time: int | None = None
    min_time: int | None = None
    max_time: int | None = None
    codecs: dict[str, CodecFacts] = field(default_factory=dict)
    key_sizes: SizeHistogram = field(default_factory=SizeHistogram)
    value_sizes: SizeHistogram = field(default_factory=SizeHistogram)
    batch_sizes: SizeHistogram = field(default_factory=SizeHistogram)
    times: TimeSeries = field(default_factory=TimeSeries)

    def merge(self, later: LogFacts, *, is_same_partition: bool = True) -> None:
        for name in (
            "batches", "bytes", "records", "record_bytes", "control_batches", "transactional_records",
            "aborted_records", "aborted_bytes", "tombstones", "keyless", "out_of_order",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(later, name))
        if is_same_partition:
            self.note_times(later.first_time, later.last_time, later.min_time, later.max_time)
        else:
            self._widen_times(later.min_time, later.max_time)
        for codec, facts in later.codecs.items():
            self.codecs.setdefault(codec, CodecFacts()).merge(facts)
        self.key_sizes.merge(later.key_sizes)
        self.value_sizes.merge(later.value_sizes)
        self.batch_sizes.merge(later.batch_sizes)
        self.times.merge(later.times)

    def note_batch(self, size: int, *, is_control: bool) -> None:
        self.batches += 1
        self.bytes += size
        self.control_batches += is_control

    def count_records(self, count: int) -> None:
        """Count the records of a batch that is not opened."""
        self.records += count

    def note_transactional(self, records: int, size: int, *, is_aborted: bool) -> None:
        """Count the records of a transactional batch of `size` bytes."""
        self.transactional_records += records
        if is_aborted:
            self.aborted_records += records
            self.aborted_bytes += size

    def note_records(self, records: int, size: int, *, tombstones: int, keyless: int) -> None:
        """Count records that a consumer sees; `size`: of their keys and values."""
        self.records += records
        self.record_bytes += size
        self.tombstones += tombstones
        self.keyless += keyless

    def note_out_of_order(self, records: int) -> None:
        self.out_of_order += records

    def note_times(self, first: int | None, last: int | None, low: int | None, high: int | None) -> None:
        """Add the first, last, smallest and largest timestamps (ms) of the following records."""
        if first is None or last is None:
            return
        if self.last_time is not None and first < self.last_time:
            self.out_of_order += 1
        if self.first_time is None:
            self.first_time = first
        self.last_time = last
        self._widen_times(low, high)

    def _widen_times(self, low: int | None, high: int | None) -> None:
        if low is not None:
            self.min_time = low if self.min_time is None else min(low, self.min_time)
        if high is not None:
            self.max_time = high if self.max_time is None else max(high, self.max_time)
