"""Two streams of records are compared as two dictionaries, or two lists, would be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tailrace.spark.jobs.diff.record_diff import FIELDS, Difference, RecordDiff, compared_fields

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "offset": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": _HEADERS,
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
}
Row = tuple[Any, ...]  # offset, and the fields

small_bytes = st.none() | st.sampled_from([b"", b"a", b"b"])
headers = st.none() | st.lists(st.tuples(st.sampled_from("xy"), small_bytes), min_size=1, max_size=2)
contents = st.tuples(small_bytes, small_bytes, headers, st.integers(0, 2), st.integers(0, 1))
logs = st.dictionaries(st.integers(0, 30), contents, max_size=20).map(
    lambda found: [(offset, *found[offset]) for offset in sorted(found)]
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Draw two logs that are mostly the same."""
    here = draw(logs)
    changes = {row[0]: row for row in draw(logs)[:4]}
    gone = set(draw(st.lists(st.integers(0, 30), max_size=4)))
    there = {row[0]: row for row in here if row[0] not in gone} | changes
    return here, [there[offset] for offset in sorted(there)]


@st.composite
def cut(draw: st.DrawFn, rows: list[Row]) -> list[Any]:
    """Return rows as batches, some of them empty."""
    edges = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [_batch(rows[start:end]) for start, end in zip([0, *edges], [*edges, len(rows)], strict=True)]


def _batch(rows: list[Row]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * len(_TYPES)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _TYPES.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(_TYPES))


@given(st.data(), pairs(), st.sampled_from([(), ("timestamps",), ("headers", "timestamps")]))
def test_a_diff_by_offset_equals_that_of_two_dictionaries(
    data: st.DataObject, logs: tuple[list[Row], list[Row]], ignored: tuple[str, ...]
) -> None:
    fields = compared_fields(ignored)
    found = RecordDiff(fields, kept=100).run(data.draw(cut(logs[0])), data.draw(cut(logs[1])))
    here, there = ({row[0]: dict(zip(FIELDS, row[1:], strict=True)) for row in rows} for rows in logs)
    assert _offsets(found.here.spans, here) == sorted(here.keys() - there.keys())
    assert _offsets(found.there.spans, there) == sorted(there.keys() - here.keys())
    differing = {
        offset: tuple(name for name in fields if here[offset][name] != there[offset][name])
        for offset in sorted(here.keys() & there.keys())
    }
    expected = [(offset, offset, names) for offset, names in differing.items() if names]
    assert found.mismatches == expected
    assert (found.here.records, found.there.records) == (len(here), len(there))
    assert found.equal == len(here.keys() & there.keys()) - len(expected)
    assert found.is_equal == ([(row[0], *_seen(row, fields)) for row in logs[0]] == [
        (row[0], *_seen(row, fields)) for row in logs[1]
    ])  # fmt: skip


def _seen(row: Row, fields: tuple[str, ...]) -> list[Any]:
    return [value for name, value in zip(FIELDS, row[1:], strict=True) if name in fields]


def _offsets(spans: list[Any], log: dict[int, Any]) -> list[int]:
    """Return the offsets of spans. Check that each has the stated number, and that no two spans touch."""
    found = []
    for span in spans:
        inside = [offset for offset in sorted(log) if span.first <= offset <= span.last]
        assert len(inside) == span.records
        found += inside
    ordered = sorted(log)
    for one, other in pairwise(spans):
        assert ordered.index(other.first) > ordered.index(one.last) + 1
    return found


@given(st.data(), pairs())
def test_a_diff_by_order_equals_that_of_two_lists(data: st.DataObject, logs: tuple[list[Row], list[Row]]) -> None:
    found = RecordDiff(by_offset=False, kept=100).run(data.draw(cut(logs[0])), data.draw(cut(logs[1])))
    differing = [
        (one[0], other[0], tuple(name for name, a, b in zip(FIELDS, one[1:], other[1:], strict=True) if a != b))
        for one, other in zip(*logs, strict=False)
    ]
    assert found.mismatches == [one for one in differing if one[2]]
    common = min(map(len, logs))
    assert found.here.only == len(logs[0]) - common
    assert found.there.only == len(logs[1]) - common


@given(st.data(), pairs(), st.integers(0, 31), st.integers(1, 3))
def test_the_differences_of_two_consecutive_ranges_add_up_to_that_of_the_whole_range(
    data: st.DataObject, logs: tuple[list[Row], list[Row]], edge: int, kept: int
) -> None:
    whole = RecordDiff(kept=kept).run([_batch(logs[0])], [_batch(logs[1])])
    joined = Difference(kept)
    for low, high in ((0, edge), (edge, 100)):
        parts = [[_batch([row for row in rows if low <= row[0] < high])] for rows in logs]
        joined.add(RecordDiff(kept=kept).run(*parts))
    assert joined == whole
