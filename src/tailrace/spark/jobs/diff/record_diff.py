"""Compares two copies of a partition record by record, as streams of Arrow batches, without an object per record.

By offset, the two streams are merged. Up to the smaller of the two last offsets, records that only one side has are
reported as spans, and records of both sides are compared column by column. By order, record N of one side is compared
with record N of the other; an additional record on one side then makes all later ones differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.ids import Offset

FIELDS = ("key", "value", "headers", "timestamp", "timestampType")  # the compared fields
IGNORABLE = {"timestamps": ("timestamp", "timestampType"), "headers": ("headers",)}


class Span(NamedTuple):
    """Consecutive records that only one side has."""

    first: Offset
    last: Offset
    records: int


class Mismatch(NamedTuple):
    """A record that both sides have, with different fields."""

    here: Offset
    there: Offset
    fields: tuple[str, ...]


@dataclass(slots=True)
class Side:
    """Counts and spans of one of the two copies."""

    records: int = 0
    only: int = 0  # records that the other side does not have
    spans: list[Span] = field(default_factory=list)
    first: Offset = -1
    last: Offset = -1

    def add(self, later: Side, kept: int) -> None:
        """Add the result of later offsets. A span that continues there becomes one span."""
        if not later.records:
            return
        spans = later.spans
        if self.spans and spans and self.spans[-1].last == self.last and spans[0].first == later.first:
            self.spans[-1] = Span(self.spans[-1].first, spans[0].last, self.spans[-1].records + spans[0].records)
            spans = spans[1:]
        self.spans = (self.spans + spans)[:kept]
        self.first = later.first if not self.records else self.first
        self.last = later.last
        self.records += later.records
        self.only += later.only


@dataclass(slots=True)
class Difference:
    """The result of a comparison. Counts cover all records; only the first `kept` spans and mismatches are listed."""

    kept: int = 10
    here: Side = field(default_factory=Side)
    there: Side = field(default_factory=Side)
    equal: int = 0
    differing: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    fields: Counter[str] = field(default_factory=Counter)

    @property
    def is_equal(self) -> bool:
        return not (self.here.only or self.there.only or self.differing)

    def add(self, later: Difference) -> None:
        """Add the result of later offsets."""
        self.here.add(later.here, self.kept)
        self.there.add(later.there, self.kept)
        self.equal += later.equal
        self.differing += later.differing
        self.fields.update(later.fields)
        self.mismatches = (self.mismatches + later.mismatches)[: self.kept]


def compared_fields(ignored: Iterable[str]) -> tuple[str, ...]:
    """Return the columns to compare if timestamps, headers or offsets are ignored. (An offset is not a column.)"""
    dropped = {name for word in ignored for name in IGNORABLE.get(word, ())}
    return tuple(name for name in FIELDS if name not in dropped)


class RecordDiff:
    """A comparison of two ordered streams of batches with an `offset` column and the fields to compare."""

    def __init__(self, fields: tuple[str, ...] = FIELDS, *, by_offset: bool = True, kept: int = 10) -> None:
        self._fields = fields
        self._by_offset = by_offset
        self.found = Difference(kept)

    def run(self, here: Iterable[Any], there: Iterable[Any]) -> Difference:
        left, right = _Stream(here), _Stream(there)
        while left.fill() and right.fill():
            if self._by_offset:
                end = min(left.last_offset, right.last_offset)
                self._merge(left.take_through(end), right.take_through(end))
            else:
                rows = min(left.rows, right.rows)
                self._compare_all(left.take(rows), right.take(rows))
        while left.fill():
            self.found.here.add(_seen(left.take(left.rows).column("offset"), None), self.found.kept)
        while right.fill():
            self.found.there.add(_seen(right.take(right.rows).column("offset"), None), self.found.kept)
        return self.found

    def _merge(self, here: Any, there: Any) -> None:
        """Compare batches that cover the same range of offsets."""
        offsets_here, offsets_there = here.column("offset"), there.column("offset")
        if not offsets_here.equals(offsets_there):
            in_both = pc.is_in(offsets_here, value_set=offsets_there)
            self.found.here.add(_seen(offsets_here, in_both), self.found.kept)
            here = here.filter(in_both)
            in_both = pc.is_in(offsets_there, value_set=offsets_here)
            self.found.there.add(_seen(offsets_there, in_both), self.found.kept)
            there = there.filter(in_both)
            self._compare(here, there)
        else:
            self._compare_all(here, there)

    def _compare_all(self, here: Any, there: Any) -> None:
        everything = pa.repeat(pa.scalar(True), here.num_rows)
        self.found.here.add(_seen(here.column("offset"), everything), self.found.kept)
        self.found.there.add(_seen(there.column("offset"), everything), self.found.kept)
        self._compare(here, there)

    def _compare(self, here: Any, there: Any) -> None:
        """Compare row N of one batch with row N of the other."""
        differs: dict[str, list[int]] = {}
        for name in self._fields:
            left, right = here.column(name), there.column(name)
            if not left.equals(right):
                differs[name] = _different_rows(left, right)
                self.found.fields[name] += len(differs[name])
        rows_that_differ = sorted(set(chain.from_iterable(differs.values())))
        self.found.differing += len(rows_that_differ)
        self.found.equal += here.num_rows - len(rows_that_differ)
        for row in rows_that_differ[: self.found.kept - len(self.found.mismatches)]:
            names = tuple(name for name in self._fields if row in differs.get(name, ()))
            offsets = (here.column("offset")[row].as_py(), there.column("offset")[row].as_py())
            self.found.mismatches.append(Mismatch(*offsets, names))


def _seen(offsets: Any, in_both: Any) -> Side:
    """Return the counts and spans of one side's rows. `in_both` marks the rows of both sides; None: no row."""
    rows = len(offsets)
    if not rows:
        return Side()
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if in_both is None:
        return Side(rows, rows, [Span(first, last, rows)], first, last)
    spans = list(_runs(offsets, in_both))
    return Side(rows, sum(span.records for span in spans), spans, first, last)


class _Stream:
    """A stream of batches from which rows are taken."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = iter(batches)
        self._batch: Any = None
        self._start = 0

    def fill(self) -> bool:
        """Get the next batch if the current one is used up. Return False at the end of the stream."""
        while self._batch is None or self._start == self._batch.num_rows:
            self._batch = next(self._batches, None)
            self._start = 0
            if self._batch is None:
                self._batches = iter(())
                return False
        return True

    @property
    def rows(self) -> int:
        return int(self._batch.num_rows - self._start)

    @property
    def last_offset(self) -> Offset:
        return int(self._batch.column("offset")[-1].as_py())

    def take(self, rows: int) -> Any:
        taken = self._batch.slice(self._start, rows)
        self._start += rows
        return taken

    def take_through(self, offset: Offset) -> Any:
        """Take the rows up to and including an offset."""
        rest = self._batch.column("offset").slice(self._start)
        if rest[-1].as_py() <= offset:
            return self.take(self.rows)
        low, high = 0, self.rows
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if rest[middle].as_py() <= offset else (low, middle)
        return self.take(low)


def _runs(offsets: Any, in_both: Any) -> Iterator[Span]:
    """Yield the spans of offsets that are not in both."""
    encoded = pc.run_end_encode(in_both)
    start = 0
    for end, is_common in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        if not is_common:
            yield Span(offsets[start].as_py(), offsets[end - 1].as_py(), end - start)
        start = end


def _different_rows(left: Any, right: Any) -> list[int]:
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return [row for row, (one, other) in enumerate(pairs) if one != other]
    unequal = pc.fill_null(pc.not_equal(left, right), False)
    one_is_null = pc.xor(pc.is_null(left), pc.is_null(right))
    return list(pc.indices_nonzero(pc.or_(unequal, one_is_null)).to_pylist())
