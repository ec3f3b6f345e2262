"""Conversion down for old clients and up for old messages."""

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker
from tailrace.records.conversion import down_convert, split_any, up_convert
from tailrace.records.legacy import Message, build_messages, iter_messages, split_messages
from tailrace.records.record import Record, TimestampType, iter_records

CREATE, APPEND, NONE = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME, TimestampType.NO_TIMESTAMP


def batch(*offsets: int, base_offset: int = 10, **options) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, **options)
    for offset in offsets:
        builder.append(1000 + offset, b"k", b"v%d" % offset, [("h", b"x")], offset=offset)
    return builder.build()


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_converted_records_lose_headers_and_in_format_0_timestamps(magic, codec):
    converted = down_convert(batch(10, 12, codec=codec) + batch(20, base_offset=20, codec=codec), magic)
    assert converted.records_converted == 3
    assert len(list(split_messages(converted.data))) == (3 if codec == Codec.NONE else 2)
    assert list(iter_messages(converted.data)) == [
        Record(offset, 1000 + offset if magic else -1, CREATE if magic else NONE, b"k", b"v%d" % offset)
        for offset in (10, 12, 20)
    ]


def test_uncompressed_records_before_the_wanted_offset_are_dropped():
    assert [record.offset for record in iter_messages(down_convert(batch(10, 11, 12), 1, 11).data)] == [11, 12]
    packed = batch(10, 11, 12, codec=Codec.GZIP)
    assert [record.offset for record in iter_messages(down_convert(packed, 1, 11).data)] == [10, 11, 12]
    assert down_convert(batch(10, 11), 1, 50).data == b""


def test_old_clients_never_see_control_batches():
    marker = build_end_marker(
        EndTransactionMarker(ControlType.COMMIT, 1), timestamp=5, producer_id=1, producer_epoch=0, base_offset=11
    )
    converted = down_convert(batch(10) + marker + batch(12, base_offset=12), 1)
    assert [record.offset for record in iter_messages(converted.data)] == [10, 12]


def test_append_time_is_kept():
    data = batch(10, 11, timestamp_type=APPEND, log_append_time_ms=7_777, codec=Codec.GZIP)
    (wrapper,) = split_messages(down_convert(data, 1).data)
    assert (wrapper.timestamp_type, wrapper.timestamp) == (APPEND, 7_777)
    assert {record.timestamp for record in wrapper.records()} == {7_777}


def test_zstd_cannot_be_converted_down():
    with pytest.raises(KafkaError) as refused:
        down_convert(batch(10, codec=Codec.ZSTD), 1)
    assert refused.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_messages_that_already_have_the_old_format_are_not_converted():
    old = build_messages([Record(3, 5, CREATE, b"a", b"b")], magic=1, codec=Codec.LZ4)
    assert down_convert(old, 1) == (old, 0)
    converted = down_convert(old, 0)
    assert converted.records_converted == 1
    assert list(iter_messages(converted.data)) == [Record(3, -1, NONE, b"a", b"b")]


def test_down_conversion_to_format_2_is_refused():
    with pytest.raises(ValueError, match="magic 2"):
        down_convert(batch(10), 2)


def test_old_messages_become_one_batch():
    old = [Record(3, 5, CREATE, b"a", b"b"), Record(9, 4, CREATE, None, b"c")]
    converted = up_convert(old, base_offset=100, codec=Codec.GZIP, leader_epoch=6)
    assert converted.records_converted == 2
    new = RecordBatch(memoryview(converted.data))
    new.check()
    assert (new.leader_epoch, new.max_timestamp, new.base_timestamp) == (6, 5, 5)
    assert [(record.offset, record.timestamp, record.key) for record in iter_records(new)] == [
        (100, 5, b"a"),
        (101, 4, None),
    ]


def test_a_log_may_contain_several_formats():
    data = build_messages([Record(3, 5, CREATE, b"a", b"b")], magic=0) + batch(10) + batch(11, base_offset=11)[:-1]
    first, second = split_any(data)  # the cut one is left out
    assert isinstance(first, Message)
    assert isinstance(second, RecordBatch)
    with pytest.raises(CorruptBatch, match="unknown magic 3"):
        list(split_any(batch(10)[:16] + b"\x03" + bytes(80)))
    with pytest.raises(CorruptBatch, match="too small"):
        list(split_any(bytes(40)))
