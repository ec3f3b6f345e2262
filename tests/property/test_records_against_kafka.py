"""Records as Kafka's own classes read, write and validate them: the same bytes, the same answers."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.model.errors import KafkaError
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records import kernels
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch, split_batches
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.decompression import decompress
from tailrace.records.legacy import build_messages, iter_messages
from tailrace.records.record import Record, TimestampType, iter_records
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.oracle_types import OracleError, OracleRecord
from tests.support.validated import validate_produced
from tests.support.zstd_version import CODECS_WITH_KAFKAS_BYTES, HAS_KAFKAS_ZSTD

pytestmark = pytest.mark.kafka

compare = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

NAMES = {Codec.NONE: "none", Codec.GZIP: "gzip", Codec.SNAPPY: "snappy", Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}
TYPES = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}

ZSTD = ["zstd"] if HAS_KAFKAS_ZSTD else []  # of the compression types that records are written with
codecs = st.sampled_from(CODECS_WITH_KAFKAS_BYTES)
contents = st.one_of(
    st.none(), st.binary(max_size=40), st.builds(lambda a, n: a * n, st.binary(max_size=9), st.integers(0, 300))
)
timestamps = st.one_of(st.integers(START_MS - 5000, START_MS + 5000), st.just(-1), st.integers(0, 2**63 - 1))
header_lists = st.lists(st.tuples(st.text(max_size=6), st.one_of(st.none(), st.binary(max_size=9))), max_size=3)
entries = st.tuples(timestamps, contents, contents, st.one_of(st.just([]), header_lists), st.integers(1, 4))


def oracle_records(rows, base_offset):
    offset = base_offset - 1
    records = []
    for timestamp, key, value, headers, step in rows:
        offset += step
        records.append(
            OracleRecord(key, value, timestamp, tuple((name.encode(), content) for name, content in headers), offset)
        )
    return records


@compare
@given(
    rows=st.lists(entries, min_size=1, max_size=8),
    codec=codecs,
    base_offset=st.integers(0, 2**40),
    timestamp_type=st.sampled_from(list(TYPES)),
    producer=st.one_of(
        st.none(), st.tuples(st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))
    ),
    transactional=st.booleans(),
    leader_epoch=st.integers(-1, 2**31 - 1),
    delete_horizon_ms=st.one_of(st.none(), st.integers(0, 2**50)),
    past_the_end=st.integers(0, 9),
)
def test_a_built_batch_has_kafkas_bytes_and_reads_the_same(
    log_oracle: LogOracle,
    rows,
    codec,
    base_offset,
    timestamp_type,
    producer,
    transactional,
    leader_epoch,
    delete_horizon_ms,
    past_the_end,
):
    records = oracle_records(rows, base_offset)
    producer_id, producer_epoch, base_sequence = producer or (-1, -1, -1)
    builder = BatchBuilder(
        base_offset=base_offset,
        codec=codec,
        timestamp_type=timestamp_type,
        log_append_time_ms=START_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional and producer is not None,
        leader_epoch=leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
    )
    for (timestamp, key, value, headers, _), record in zip(rows, records, strict=True):
        builder.append(timestamp, key, value, headers, offset=record.offset)
    last_offset = records[-1].offset + past_the_end
    ours = builder.build(last_offset=last_offset)
    theirs = log_oracle.build_batch(
        records,
        codec=NAMES[codec],
        base_offset=base_offset,
        last_offset=last_offset,
        timestamp_type=TYPES[timestamp_type],
        log_append_time=START_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional and producer is not None,
        leader_epoch=leader_epoch,
        delete_horizon_ms=-1 if delete_horizon_ms is None else delete_horizon_ms,
    )
    assert ours.hex() == theirs.hex()
    (decoded,) = log_oracle.decode(ours)
    (batch,) = split_batches(ours)
    batch.check()
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (
        decoded.base_offset,
        decoded.last_offset,
        decoded.next_offset,
    )
    assert (batch.base_sequence, batch.last_sequence) == (decoded.base_sequence, decoded.last_sequence)
    assert (batch.crc, batch.max_timestamp, batch.delete_horizon_ms) == (
        decoded.crc,
        decoded.max_timestamp,
        decoded.delete_horizon_ms,
    )
    assert [as_oracle(record) for record in iter_records(batch)] == [as_tuple(record) for record in decoded.records]


def as_oracle(record: Record):
    headers = tuple((header.key.encode(), header.value) for header in record.headers)
    return (record.offset, record.timestamp, record.key, record.value, headers, record.sequence)


def as_tuple(record: OracleRecord):
    return (record.offset, record.timestamp, record.key, record.value, record.headers, record.sequence)


@compare
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.builds(lambda a, b, n: (a + b) * n, st.binary(max_size=30), st.binary(max_size=3), st.integers(0, 9000)),
        st.builds(
            lambda seed, n: bytes(random.Random(seed).choices(b"abcdefgh ", k=n)),
            st.integers(0, 1000),
            st.integers(0, 200_000),
        ),
    ),
    codec=st.sampled_from([codec for codec in CODECS_WITH_KAFKAS_BYTES if codec != Codec.NONE]),
    level=st.one_of(st.none(), st.integers(1, 9)),
    magic=st.integers(0, 2),
)
def test_compressed_bytes_are_kafkas(log_oracle: LogOracle, data, codec, level, magic):
    if codec == Codec.SNAPPY:
        level = None
    ours = compress(codec, data, level, magic=magic)
    assert ours == log_oracle.compress(data, NAMES[codec], level=level, magic=magic)
    assert log_oracle.decompress(ours, NAMES[codec], magic=magic) == data
    assert decompress(codec, ours, magic) == data


@compare
@given(
    rows=st.lists(st.tuples(timestamps, contents, contents, st.integers(1, 4)), min_size=1, max_size=6),
    codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]),
    magic=st.integers(0, 1),
    timestamp_type=st.sampled_from(list(TYPES)),
    base_offset=st.integers(0, 2**40),
)
def test_old_messages_have_kafkas_bytes_and_read_the_same(
    log_oracle: LogOracle, rows, codec, magic, timestamp_type, base_offset
):
    records = oracle_records([(*row[:3], [], row[3]) for row in rows], base_offset)
    kind = TimestampType.NO_TIMESTAMP if magic == 0 else timestamp_type
    ours = build_messages(
        [Record(record.offset, record.timestamp, kind, record.key, record.value) for record in records],
        magic=magic,
        codec=codec,
        timestamp_type=timestamp_type,
        log_append_time_ms=START_MS,
    )
    theirs = log_oracle.build_batch(
        records,
        magic=magic,
        codec=NAMES[codec],
        base_offset=records[0].offset,
        timestamp_type=TYPES[timestamp_type],
        log_append_time=START_MS,
    )
    assert ours.hex() == theirs.hex()
    decoded = [record for batch in log_oracle.decode(theirs) for record in batch.records]
    assert [as_oracle(record)[:4] for record in iter_messages(ours)] == [as_tuple(record)[:4] for record in decoded]


def damage(produced: bytes, draw) -> bytes:
    """Change a byte of the header or, under the compression, of the records; the checksum holds again."""
    batch = RecordBatch(memoryview(produced))
    payload = bytearray(decompress(batch.codec, batch.payload))
    header = bytearray(produced[:61])
    if draw(st.booleans()):
        payload[draw(st.integers(0, len(payload) - 1))] ^= 1 << draw(st.integers(0, 7))
    else:
        header[draw(st.integers(21, 60))] ^= 1 << draw(st.integers(0, 7))
        header[22] = header[22] & ~7 | batch.codec
    changed = bytearray(header + compress(batch.codec, payload))
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    changed[17:21] = RecordBatch(memoryview(changed)).computed_crc().to_bytes(4, "big")
    return bytes(changed)


@compare
@given(data=st.data())
def test_validation_gives_kafkas_bytes_or_kafkas_refusal(log_oracle: LogOracle, data):
    draw = data.draw
    source, target = draw(codecs), draw(st.sampled_from(["producer", "uncompressed", "gzip", "snappy", "lz4", *ZSTD]))
    rows = draw(st.lists(entries, min_size=1, max_size=6))
    gaps = draw(st.booleans())
    magic = draw(st.sampled_from([2, 2, 2, 1, 0])) if source != Codec.ZSTD else 2
    records = oracle_records([(*row[:3], row[3] if magic == 2 else [], row[4] if gaps else 1) for row in rows], 0)
    producer = draw(st.booleans()) and magic == 2
    produced = log_oracle.build_batch(
        records,
        magic=magic,
        codec=NAMES[source],
        base_offset=0,
        timestamp_type=draw(st.sampled_from(["CreateTime", "CreateTime", "CreateTime", "LogAppendTime"])),
        log_append_time=START_MS,
        producer_id=7 if producer else -1,
        producer_epoch=1 if producer else -1,
        base_sequence=5 if producer else -1,
        delete_horizon_ms=draw(st.sampled_from([-1, -1, 55])) if magic == 2 else -1,
    )
    if magic == 2 and draw(st.booleans()):
        produced = damage(produced, draw)
    elif draw(st.integers(0, 5)) == 0:
        produced = produced + produced
    compacted = draw(st.booleans())
    limits = draw(st.sampled_from([(LONG_MAX, LONG_MAX), (LONG_MAX, 3_600_000), (4000, 4000)]))
    timestamp_type = draw(st.sampled_from(["CreateTime", "LogAppendTime"]))
    origin = draw(st.sampled_from([Origin.CLIENT, Origin.COORDINATOR]))
    config = TopicConfig(
        compression_type=target,
        cleanup_policy=frozenset({"compact" if compacted else "delete"}),
        message_timestamp_type=timestamp_type,
        message_timestamp_before_max_ms=limits[0],
        message_timestamp_after_max_ms=limits[1],
    )
    theirs, their_error = attempt(
        OracleError,
        log_oracle.validate,
        produced,
        first_offset=1000,
        target_codec={"producer": None, "uncompressed": "none"}.get(target, target),
        compacted=compacted,
        timestamp_type=timestamp_type,
        timestamp_before_max_ms=limits[0],
        timestamp_after_max_ms=limits[1],
        leader_epoch=9,
        origin=origin.name,
    )
    ours, our_error = attempt(
        KafkaError,
        validate_produced,
        produced,
        config=config,
        base_offset=1000,
        leader_epoch=9,
        now_ms=START_MS,
        origin=origin,
    )
    assert verdict(our_error) == verdict(their_error), f"{our_error!r} / {their_error}"
    if ours is None:
        return
    assert bytes(ours.data).hex() == theirs.records.hex()
    assert ours.max_timestamp == theirs.max_timestamp
    assert ours.records_converted == theirs.records_converted
    assert ours.size_may_have_changed == theirs.size_may_have_changed
    assert ours.batches[-1].next_offset == theirs.next_offset


def verdict(error: KafkaError | OracleError | None):
    """Return an error's code and the indexes of the records that it names."""
    if error is None:
        return None
    code = error.code if isinstance(error, OracleError) else error.code.name
    return code, [index for index, _ in getattr(error, "record_errors", ())]


def attempt(expected: type[Exception], call, *arguments, **options):
    """Return `(result, None)` or `(None, error)`."""
    try:
        return call(*arguments, **options), None
    except expected as error:
        return None, error


@compare
@given(
    rows=st.lists(entries, min_size=1, max_size=5),
    codec=codecs,
    where=st.integers(0, 10_000),
    change=st.integers(1, 255),
    fix_checksum=st.booleans(),
)
def test_a_damaged_batch_is_read_or_refused_as_by_kafka(
    log_oracle: LogOracle, rows, codec, where, change, fix_checksum
):
    good = log_oracle.build_batch(oracle_records(rows, 0), codec=NAMES[codec])
    bad = bytearray(good)
    bad[12 + where % (len(bad) - 12)] ^= change
    bad[16] = 2
    batch = RecordBatch(memoryview(bad))
    if fix_checksum:
        batch.crc = batch.computed_crc()
        bad[17:21] = batch.crc.to_bytes(4, "big")
    decoded, unknown = attempt(OracleError, log_oracle.decode, bytes(bad))
    records, broken = attempt(CorruptBatch, lambda: [as_oracle(record) for record in iter_records(batch)])
    if decoded is None:
        assert "Unknown compression type" in unknown.message
        assert "unknown compression codec" in str(broken)
        return
    (theirs,) = decoded
    assert (attempt(CorruptBatch, batch.check)[1] is None) == theirs.valid
    assert (broken is None) == (theirs.error is None), f"{broken} / {theirs.error}"
    if broken is None:
        assert records == [as_tuple(record) for record in theirs.records]


@compare
@given(
    rows=st.lists(entries, min_size=1, max_size=8),
    codec=codecs,
    timestamp_type=st.sampled_from(list(TYPES)),
    horizon_before=st.sampled_from([-1, -1, 700]),
    drops=st.sets(st.integers(0, 7), max_size=7),
    past_the_end=st.integers(0, 3),
)
def test_rewritten_records_have_the_bytes_of_kafkas_cleaner(
    log_oracle: LogOracle, rows, codec, timestamp_type, horizon_before, drops, past_the_end
):
    records = oracle_records(rows, 50)
    data = log_oracle.build_batch(
        records,
        codec=NAMES[codec],
        base_offset=50,
        last_offset=records[-1].offset + past_the_end,
        timestamp_type=TYPES[timestamp_type],
        log_append_time=START_MS,
        producer_id=3,
        producer_epoch=1,
        base_sequence=20,
        leader_epoch=4,
        delete_horizon_ms=horizon_before,
    )
    batch = RecordBatch(memoryview(data))
    keep = bytes(index not in drops for index in range(len(records)))
    kept = [record for record, kept in zip(records, keep, strict=True) if kept]
    theirs = log_oracle.filter(
        data,
        drop_offsets=[record.offset for record in records if record not in kept],
        now_ms=START_MS,
        delete_retention_ms=5000,
    )
    tombstones = any(record.value is None for record in kept)
    set_horizon = tombstones and batch.delete_horizon_ms is None
    horizon = START_MS + 5000 if set_horizon else batch.delete_horizon_ms
    if len(kept) == len(records) and not set_horizon:
        assert theirs.records == data
    else:
        assert rewritten(batch, keep, horizon).hex() == theirs.records.hex()


def rewritten(batch: RecordBatch, keep: bytes, delete_horizon_ms: int | None) -> bytes:
    """Return the batch with some of its records, and with the same base offset and last offset."""
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        codec=batch.codec,
        timestamp_type=TimestampType(batch.is_log_append_time),
        log_append_time_ms=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        leader_epoch=batch.leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
    )
    records, base_timestamp, max_timestamp, count = kernels.rewrite_records(
        decompress(batch.codec, batch.payload),
        batch.record_count,
        keep,
        batch.base_timestamp,
        batch.max_timestamp if batch.is_log_append_time else None,
        delete_horizon_ms,
    )
    builder.append_encoded(records, count, base_timestamp, max_timestamp, batch.last_offset)
    return builder.build()
