"""Columns hold what the plain reader of records reads; compiled and interpreted they are the same, on any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.columnar import columns as compiled
from tailrace.records.conversion import split_any
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, RecordHeader, TimestampType, iter_records
from tests.support.column_rows import rows
from tests.support.interpreted import interpreted as interpreted_form

interpreted = interpreted_form(compiled)
many = settings(max_examples=150, deadline=None)

contents = st.one_of(st.none(), st.binary(max_size=70))
headers = st.lists(
    st.builds(RecordHeader, st.text(max_size=4), st.one_of(st.none(), st.binary(max_size=5))), max_size=3
)
times = st.integers(-1, 2**40)
fields = st.lists(st.tuples(st.integers(1, 4), times, contents, contents, headers), min_size=1, max_size=8)


@st.composite
def logs(draw):
    """Draw a few batches of any format, end to end."""
    out = bytearray()
    offset = draw(st.integers(0, 50))
    for rows_ in draw(st.lists(fields, max_size=5)):
        magic = draw(st.sampled_from([2, 2, 2, 1, 0]))
        codec = draw(st.sampled_from([Codec.NONE, Codec.NONE, *Codec]))
        if magic < 2:
            records = []
            for step, time, key, value, _ in rows_:
                offset += step
                records.append(Record(offset, time, TimestampType.CREATE_TIME, key, value))
            out += build_messages(records, magic=magic, codec=Codec.GZIP if codec == Codec.ZSTD else codec)
            continue
        producer = draw(st.integers(-1, 2))
        builder = BatchBuilder(
            base_offset=offset,
            codec=codec,
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else 3,
            base_sequence=-1 if producer < 0 else 8,
            transactional=producer >= 0 and draw(st.booleans()),
            leader_epoch=draw(st.integers(-1, 5)),
        )
        for step, time, key, value, pairs in rows_:
            offset += step
            builder.append(time, key, value, pairs, offset=offset)
        offset += 1
        out += builder.build()
    return out


@st.composite
def damaged_logs(draw):
    out = draw(logs())
    for damage in draw(st.lists(st.sampled_from(["flip", "flip", "cut", "add"]), max_size=2)):
        if damage == "flip" and out:
            out[draw(st.integers(0, len(out) - 1))] ^= 1 << draw(st.integers(0, 7))
        elif damage == "cut":
            del out[draw(st.integers(0, len(out))) :]
        else:
            out += draw(st.binary(max_size=90))
    if draw(st.booleans()):  # past the checksum, too
        position = 0
        while len(out) - position >= 61:
            size = int.from_bytes(out[position + 8 : position + 12], "big") + 12
            if size < 61 or size > len(out) - position or out[position + 16] != 2:
                break
            batch = RecordBatch(memoryview(out)[position : position + size])
            out[position + 17 : position + 21] = batch.computed_crc().to_bytes(4, "big")
            position += size
    return bytes(out)


bounds = st.tuples(st.integers(0, 60), st.integers(0, 120))
aborted = st.dictionaries(st.integers(0, 2), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 90)), max_size=2))


def read(module, data, wanted, span, max_rows, ranges):
    found = module.RecordColumns(wanted, *span, max_rows=max_rows, aborted=ranges)
    seen, position = [], 0
    try:
        while True:
            position = found.put_batches(data, position, len(data))
            seen += rows(module, found)
            if not found.is_full:
                return seen, position, found.is_done, found.next_offset
            found.reset()
    except IndexError:
        raise
    except Exception as error:
        return seen, type(error).__name__, str(error), getattr(error, "position", None)


@pytest.mark.skipif(not compiled.COMPILED, reason="the columns were not compiled here")
@many
@given(data=damaged_logs(), wanted=st.integers(0, 2**13 - 1), span=bounds, max_rows=st.integers(1, 9), ranges=aborted)
def test_compiled_and_interpreted_columns_are_equal(data, wanted, span, max_rows, ranges):
    ours = read(compiled, data, wanted, span, max_rows, ranges)
    assert ours == read(interpreted, data, wanted, span, max_rows, ranges)


@many
@given(data=logs(), span=bounds)
def test_columns_contain_the_records_of_the_plain_reader(data, span):
    expected = []
    for batch in split_any(memoryview(bytes(data))):
        for record in iter_records(batch) if isinstance(batch, RecordBatch) else batch.records():
            if span[0] <= record.offset < span[1]:
                expected.append(record)
    found, _, _, _ = read(compiled, data, 63, span, 10**6, {})
    assert found == [
        {
            "OFFSET": record.offset,
            "TIMESTAMP": record.timestamp * 1000,
            "TIMESTAMP_TYPE": record.timestamp_type,
            "KEY": record.key,
            "VALUE": record.value,
            "HEADERS": [tuple(pair) for pair in record.headers] or None,
        }
        for record in expected
    ]
