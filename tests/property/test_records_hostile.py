"""Whatever bytes arrive, the answer is records or a refusal: never another exception, never endless memory."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.errors import KafkaError
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch, split_batches
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.produce_request import check_produce_request
from tailrace.records.checks.validation import Origin
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.decompression import decompress
from tailrace.records.control_records import (
    ControlType,
    EndTransactionMarker,
    build_end_marker,
    control_key,
    parse_control,
)
from tailrace.records.conversion import down_convert, split_any
from tailrace.records.legacy import build_messages, iter_messages
from tailrace.records.record import Record, TimestampType, iter_records
from tests.support.validated import validate_produced

many = settings(max_examples=150, deadline=None)
CREATE = TimestampType.CREATE_TIME


def good_pieces() -> list[bytes]:
    """Return batches and messages of every format and codec."""
    pieces = []
    rows = [Record(offset, 1000 + offset, CREATE, b"key", b"value" * offset) for offset in range(3)]
    for codec in Codec:
        builder = BatchBuilder(codec=codec)
        for row in rows:
            builder.append(row.timestamp, row.key, row.value, [("h", b"x"), ("i", None)])
        pieces.append(builder.build())
        if codec != Codec.ZSTD:
            pieces += [build_messages(rows, magic=magic, codec=codec) for magic in (0, 1)]
    marker = EndTransactionMarker(ControlType.ABORT, 3)
    return [*pieces, build_end_marker(marker, timestamp=5, producer_id=1, producer_epoch=0)]


GOOD = good_pieces()


@st.composite
def damaged(draw) -> bytes:
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(GOOD), min_size=1, max_size=2))))
    for kind in draw(st.lists(st.sampled_from(["flip", "number", "cut", "insert"]), max_size=3)):
        where = draw(st.integers(0, max(len(data) - 1, 0)))
        if kind == "flip" and data:
            data[where] ^= 1 << draw(st.integers(0, 7))
        elif kind == "number":
            data[where : where + 4] = struct.pack(">i", draw(st.sampled_from([-1, 0, 1, 2**31 - 1, -(2**31), 1000])))
        elif kind == "cut":
            del data[where:]
        elif kind == "insert":
            data[where:where] = draw(st.binary(max_size=20))
    return bytes(data)


def repaired(data: bytes) -> bytes:
    """Return the data with a new checksum of the first batch, so that the code after the checksum test is reached."""
    if len(data) < 61 or data[16] != 2:
        return data
    batch = bytearray(data)
    size = int.from_bytes(batch[8:12], "big", signed=True) + 12
    if not 61 <= size <= len(batch):
        return data
    batch[17:21] = RecordBatch(memoryview(batch)[:size]).computed_crc().to_bytes(4, "big")
    return bytes(batch)


@many
@given(data=st.one_of(st.binary(max_size=200), damaged(), damaged().map(repaired)))
def test_readers_of_any_bytes_return_records_or_raise_corrupt_batch(data):
    for read in (read_batches, lambda raw: list(iter_messages(raw)), lambda raw: list(split_any(raw))):
        with contextlib.suppress(CorruptBatch):
            read(data)


def read_batches(data: bytes) -> None:
    for batch in split_batches(data):
        for record in iter_records(batch):
            if batch.is_control:
                parse_control(record)


@many
@given(
    data=st.one_of(st.binary(max_size=200), damaged(), damaged().map(repaired)),
    compression=st.sampled_from(["producer", "uncompressed", "lz4"]),
    compacted=st.booleans(),
    timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    origin=st.sampled_from(list(Origin)),
)
def test_validation_of_any_bytes_places_or_refuses_them(data, compression, compacted, timestamp_type, origin):
    config = TopicConfig(
        compression_type=compression,
        cleanup_policy=frozenset({"compact" if compacted else "delete"}),
        message_timestamp_type=timestamp_type,
    )
    try:
        result = validate_produced(data, config=config, base_offset=70, leader_epoch=-1, now_ms=5000, origin=origin)
    except KafkaError:
        return
    assert b"".join(bytes(batch.view) for batch in result.batches) == bytes(result.data)
    for batch in result.batches:
        batch.check()
        if origin is Origin.CLIENT:
            assert batch.base_offset == 70
            assert len(list_or_corrupt(batch)) in (0, batch.record_count)


def list_or_corrupt(batch: RecordBatch) -> list[Record]:
    """Return the records, or none if a compressed batch is corrupt: Kafka does not compare the lengths of its records
    with their fields."""
    try:
        return list(iter_records(batch))
    except CorruptBatch:
        assert batch.is_compressed
        return []


@many
@given(data=st.one_of(damaged(), damaged().map(repaired)), magic=st.integers(0, 1), version=st.integers(3, 13))
def test_conversion_and_request_checks_of_any_bytes_raise_only_expected_errors(data, magic, version):
    for call in (lambda: down_convert(data, magic), lambda: check_produce_request(data, version)):
        with contextlib.suppress(CorruptBatch, KafkaError, ValueError):
            call()


@many
@given(
    codec=st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]),
    start=st.integers(0, 60),
    noise=st.binary(max_size=100),
    magic=st.integers(0, 2),
)
def test_decompression_never_exceeds_its_limit(codec, start, noise, magic):
    packed = compress(codec, b"some words and some words again " * 40)
    with contextlib.suppress(CorruptBatch):
        assert len(decompress(codec, packed[:start] + noise + packed[start:], magic, max_size=2000)) <= 2000


@many
@given(kind=st.sampled_from(list(ControlType)[1:]), value=st.one_of(st.none(), st.binary(max_size=80)))
def test_control_values_are_parsed_or_refused(kind, value):
    with contextlib.suppress(CorruptBatch):
        parse_control(Record(0, 0, CREATE, control_key(kind), value))
