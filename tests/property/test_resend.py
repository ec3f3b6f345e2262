"""A batch that is sent on has the same records, and every broker takes it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.legacy import Message, build_messages
from tailrace.records.raw_batches import RawBatches
from tailrace.records.record import Record, RecordHeader, TimestampType, iter_records
from tailrace.records.resend import as_produced, halves
from tests.support.validated import validate_produced

small_bytes = st.none() | st.binary(max_size=4)
headers = st.lists(st.builds(RecordHeader, st.text(max_size=2), small_bytes), max_size=2).map(tuple)
records = st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 10**12), small_bytes, small_bytes, headers), max_size=6)


def expected(record: Record, offset: int, timestamp: int | None = None) -> Record:
    stamp = record.timestamp if timestamp is None else timestamp
    return Record(offset, stamp, TimestampType.CREATE_TIME, record.key, record.value, record.headers)


def as_received(data: bytes) -> list[Record]:
    """Return the records of a client's batch after the broker has validated it."""
    found = validate_produced(bytearray(data), config=TopicConfig(), base_offset=0, leader_epoch=0, now_ms=10**12)
    return [record._replace(sequence=-1) for batch in found.batches for record in iter_records(batch)]


@given(
    records,
    st.integers(0, 1000),
    st.sampled_from(Codec),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 100),
    st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
@example([(1, 5, b"a", b"b", ()), (1, 6, b"c", None, ())], 7, Codec.ZSTD, False, True, None, (0, 12))
def test_batches_inside_the_range_are_sent_unchanged(
    rows: list[tuple[int, int, bytes | None, bytes | None, tuple[RecordHeader, ...]]],
    base_offset: int,
    codec: Codec,
    log_append_time: bool,
    transactional: bool,
    delete_horizon_ms: int | None,
    window: tuple[int, int],
) -> None:
    kind = TimestampType.LOG_APPEND_TIME if log_append_time else TimestampType.CREATE_TIME
    builder = BatchBuilder(
        base_offset=base_offset,
        codec=codec,
        timestamp_type=kind,
        log_append_time_ms=77 if log_append_time else -1,
        producer_id=3 if transactional else -1,
        producer_epoch=1 if transactional else -1,
        base_sequence=9 if transactional else -1,
        transactional=transactional,
        leader_epoch=4,
        delete_horizon_ms=delete_horizon_ms,
    )
    offset = base_offset - 1
    kept = []
    for step, timestamp, key, value, pairs in rows:
        offset += step
        record = Record(offset, timestamp, kind, key, value, pairs)
        builder.append_record(record)
        kept.append(record)
    if not rows:
        return
    start, end = base_offset + window[0], base_offset + window[1]
    wanted = [record for record in kept if start <= record.offset < end]
    raw = RawBatches(start, end, max_bytes=1)
    data = builder.build()
    assert raw.put_batches(data, 0, len(data)) in (0, len(data))
    sent = [found for batch in raw.take() if (found := as_produced(batch, start, end)) is not None]
    if not wanted:
        assert sent == []
        return
    (only,) = sent
    stamp = 77 if log_append_time else None
    assert as_received(only.data) == [expected(record, number, stamp) for number, record in enumerate(wanted)]
    assert only.records == len(wanted)
    assert wanted[-1].offset < only.next_offset
    assert RecordBatch(memoryview(only.data)).codec == codec
    is_whole = len(wanted) == len(kept) == kept[-1].offset - base_offset + 1
    assert only.was_decoded == (not is_whole or log_append_time or delete_horizon_ms is not None)
    parts = halves(only)
    if parts is not None:
        assert [one._replace(offset=0) for part in parts for one in as_received(part.data)] == [
            one._replace(offset=0) for one in as_received(only.data)
        ]


@given(records, st.sampled_from([0, 1]), st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_messages_of_old_formats_become_batches(
    rows: list[tuple[int, int, bytes | None, bytes | None, tuple[RecordHeader, ...]]], magic: int, codec: Codec
) -> None:
    old = [
        Record(number, timestamp, TimestampType.CREATE_TIME, key, value)
        for number, (_, timestamp, key, value, _) in enumerate(rows)
    ]
    raw = RawBatches(0)
    data = build_messages(old, magic=magic, codec=codec)
    raw.put_batches(data, 0, len(data))
    batches = raw.take()
    assert all(isinstance(batch, Message) for batch in batches)
    sent = [found for batch in batches if (found := as_produced(batch, 0, 100)) is not None]
    received = [record._replace(offset=0) for one in sent for record in as_received(one.data)]
    assert received == [expected(record, 0, -1 if magic == 0 else None) for record in old]


@given(records)
def test_each_record_gets_one_more_header(
    rows: list[tuple[int, int, bytes | None, bytes | None, tuple[RecordHeader, ...]]],
) -> None:
    builder = BatchBuilder(base_offset=50)
    for _, timestamp, key, value, pairs in rows:
        builder.append(timestamp, key, value, pairs)
    if rows:
        batch = RecordBatch(memoryview(builder.build()))
        sent = as_produced(batch, 0, 100, lambda record: ("from", b"%d" % record.offset))
        assert sent is not None
        for number, record in enumerate(as_received(sent.data)):
            assert record.headers == (*rows[number][4], RecordHeader("from", b"%d" % (50 + number)))
