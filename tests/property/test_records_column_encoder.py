"""Columns to batches: compiled and interpreted alike, and what they write is what the records were."""

from __future__ import annotations

import re
from array import array
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.client.producing.partitioner import partition_of_key
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder, assemble_batch
from tailrace.records.columnar import column_encoder as compiled
from tailrace.records.record import iter_records
from tests.support.interpreted import interpreted as interpreted_form

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


INTERPRETED = interpreted_form(compiled)


class Row(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    time_us: int | None
    partition: int | None
    topic: int


ROWS = st.lists(
    st.builds(
        Row,
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=200),
        st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3),
        st.none() | st.integers(0, 2**53),
        st.none() | st.integers(0, 2),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)
COUNTS, FIRSTS, KEYLESS = [3, 5], [0, 3], [2, 4]


class Encoded(NamedTuple):
    targets: list[int]
    sealed: list[tuple[int, int, int, int, bytes]]  # batch, count, base and largest timestamp, records
    rows: int
    digest: int


def strings(module: ModuleType, column: Any) -> Any:
    validity, ends, data = column.buffers()
    return module.BytesInput(ends, b"" if data is None else data, validity, column.offset)


def integers(module: ModuleType, column: Any, width: int) -> Any:
    validity, data = column.buffers()
    return module.IntInput(data, width, validity, column.offset)


def encode(module: ModuleType, rows: list[Row], limit: int, skip: int = 0) -> Encoded:
    """Encode all rows except the first `skip`, which stay in the buffers."""
    keys = pa.array([row.key for row in rows], pa.binary())[skip:]
    values = pa.array([row.value for row in rows], pa.binary())[skip:]
    pairs = [None if row.headers is None else [{"key": k, "value": v} for k, v in row.headers] for row in rows]
    headers = pa.array(pairs, HEADERS)[skip:]
    times = pa.array([row.time_us for row in rows], pa.int64())[skip:]
    partitions = pa.array([row.partition for row in rows], pa.int32())[skip:]
    topics = pa.array([row.topic for row in rows], pa.int32())[skip:]
    count = len(rows) - skip
    targets = array("i", bytes(4 * count))
    key_input, value_input = strings(module, keys), strings(module, values)
    assert module.choose_batches(
        targets, count, key_input, integers(module, partitions, 4), integers(module, topics, 4),
        array("i", COUNTS), array("i", FIRSTS), array("i", KEYLESS),
    ) == module.NO_ROW  # fmt: skip
    validity, ends = headers.buffers()[:2]
    flat = headers.values
    header_input = module.HeadersInput(
        ends, validity, strings(module, flat.field(0)), strings(module, flat.field(1)), headers.offset
    )
    batches = [module.OpenBatch() for _ in range(sum(COUNTS))]
    encoder = module.RowEncoder(limit)
    sealed = []

    def seal(number: int) -> None:
        batch = batches[number]
        records = bytes(memoryview(batch.buffer)[module.HEADER_ROOM : batch.size])
        sealed.append((number, batch.count, batch.base_timestamp, batch.max_timestamp, records))
        batch.restart()

    row = 0
    while row < count:
        row = encoder.encode_rows(
            batches, targets, key_input, value_input, header_input, integers(module, times, 8), NOW_MS, row, count
        )
        if row < count:
            seal(targets[row])
    for number, batch in enumerate(batches):
        if batch.count:
            seal(number)
    return Encoded(list(targets), sealed, encoder.rows, encoder.digest)


@settings(max_examples=100, deadline=None)
@given(rows=ROWS, limit=st.sampled_from([61, 200, 500, 100_000]), skip=st.integers(0, 3))
def test_compiled_and_interpreted_encoders_agree_with_the_builder(rows: list[Row], limit: int, skip: int) -> None:
    skip = min(skip, len(rows) - 1)
    ours = encode(compiled, rows, limit, skip)
    assert ours == encode(INTERPRETED, rows, limit, skip)
    rows = rows[skip:]
    assert ours.rows == len(rows)
    by_batch: dict[int, list[Row]] = {}
    for row, target in zip(rows, ours.targets, strict=True):
        place = row.partition
        if place is None:
            place = KEYLESS[row.topic] if row.key is None else partition_of_key(row.key, COUNTS[row.topic])
        assert target == FIRSTS[row.topic] + place
        by_batch.setdefault(target, []).append(row)
    found: dict[int, list[Row]] = {}
    for number, count, base, largest, records in ours.sealed:
        data = assemble_batch(
            records, base_offset=0, last_offset=count - 1, base_timestamp=base, max_timestamp=largest, attributes=0,
            producer_id=-1, producer_epoch=-1, base_sequence=-1, leader_epoch=-1, record_count=count,
        )  # fmt: skip
        decoded = list(iter_records(RecordBatch(memoryview(data))))
        assert [record.offset for record in decoded] == list(range(count))
        assert largest == max(record.timestamp for record in decoded)
        assert len(data) <= limit or count == 1
        found.setdefault(number, []).extend(
            Row(one.key, one.value, [(h.key, h.value) for h in one.headers], one.timestamp, None, 0) for one in decoded
        )
    expected = {
        number: [
            row._replace(
                headers=row.headers or [], partition=None, topic=0,
                time_us=NOW_MS if row.time_us is None else row.time_us // 1000,
            )
            for row in some
        ]
        for number, some in by_batch.items()
    }  # fmt: skip
    assert found == expected


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, order=st.randoms())
def test_the_digest_depends_on_every_row_but_not_on_order_or_batches(rows: list[Row], order: Any) -> None:
    before = encode(compiled, rows, 100_000)
    shuffled = rows.copy()
    order.shuffle(shuffled)
    assert encode(compiled, shuffled, 61).digest == before.digest
    changed = [*rows[:-1], rows[-1]._replace(value=(rows[-1].value or b"") + b"x")]
    assert encode(compiled, changed, 100_000).digest != before.digest


@pytest.mark.parametrize("module", [compiled, INTERPRETED], ids=["compiled", "interpreted"])
def test_a_batch_is_the_one_that_the_builder_makes(module: ModuleType) -> None:
    rows = [Row(b"k%d" % n, b"v" * n, None, (NOW_MS + n) * 1000, 0, 0) for n in range(50)]
    (number, count, base, largest, records) = encode(module, rows, 100_000).sealed[0]
    builder = BatchBuilder(codec=Codec.NONE)
    for row in rows:
        assert row.time_us is not None
        builder.append(row.time_us // 1000, row.key, row.value)
    assert (number, count, base, largest) == (0, 50, NOW_MS, NOW_MS + 49)
    assert records == builder.build()[module.HEADER_ROOM :]


@pytest.mark.parametrize("module", [compiled, INTERPRETED], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (Row(None, b"v", None, -1, 0, 0), "row 0 has a timestamp before 1970"),
        (Row(None, b"v", [(None, b"x")], None, 0, 0), "row 0 has a header without a key"),  # type: ignore[list-item]
    ],
)
def test_rows_that_cannot_become_records_are_refused(module: ModuleType, row: Row, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        encode(module, [row], 1000)


@pytest.mark.parametrize("module", [compiled, INTERPRETED], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("ends", "validity", "targets", "offset", "sentence"),
    [
        ([0, 9], None, [0], 0, "row 0 has a key or a value outside its column's data"),
        ([-1, 2], None, [0], 0, "row 0 has a key or a value outside its column's data"),
        ([2, 1], None, [0], 0, "row 0 has a key or a value outside its column's data"),
        ([0], None, [0], 0, "the buffers of values hold 0 rows, and 1 are needed"),
        ([0, 3], b"", [0], 0, "the buffers of values hold 0 rows, and 1 are needed"),
        ([0, 3], None, [7], 0, "row 0 has batch 7 of 1"),
        ([0, 3], None, [-1], 0, "row 0 has batch -1 of 1"),
        ([0, 3], None, [], 0, "rows 0 to 1 are not among the 0 that have a batch"),
        ([0, 3], None, [0], -5, "row 0 has the negative offset -5"),
    ],
)
def test_buffers_that_contradict_each_other_are_refused(
    module: ModuleType, ends: list[int], validity: bytes | None, targets: list[int], offset: int, sentence: str
) -> None:
    values = module.BytesInput(array("i", ends), b"abc", validity)
    offsets = module.IntInput(array("q", [offset]), 8, None)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        module.RowEncoder(1000).encode_rows(
            [module.OpenBatch()], array("i", targets), None, values, None, None, NOW_MS, 0, 1, offsets
        )


@pytest.mark.parametrize("module", [compiled, INTERPRETED], ids=["compiled", "interpreted"])
def test_a_row_with_an_unknown_topic_or_no_partitions_gets_no_batch(module: ModuleType) -> None:
    keys = module.BytesInput(array("i", [0, 1]), b"k", None)
    one = array("i", [0])
    assert module.choose_batches(array("i", [0]), 1, keys, None, None, one, one, one) == 0
    topics = module.IntInput(array("i", [5]), 4, None)
    with pytest.raises(ValueError, match="row 0 has topic 5 of 1"):
        module.choose_batches(array("i", [0]), 1, keys, None, topics, one, one, one)
