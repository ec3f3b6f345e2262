"""Reading the records of a batch."""

import pytest

from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder, empty_batch
from tailrace.records.record import Record, RecordHeader, TimestampType, iter_records


def records_of(data: bytes) -> list[Record]:
    return list(iter_records(RecordBatch(memoryview(data))))


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_read_as_written(codec):
    builder = BatchBuilder(base_offset=100, codec=codec, producer_id=1, producer_epoch=2, base_sequence=2**31 - 1)
    builder.append(1_000, b"key", None, [("trace", b"\x01"), ("ü", None)])
    builder.append(900, None, b"value", offset=105)
    assert records_of(builder.build()) == [
        Record(
            100,
            1_000,
            TimestampType.CREATE_TIME,
            b"key",
            None,
            (RecordHeader("trace", b"\x01"), RecordHeader("ü", None)),
            2**31 - 1,
        ),
        Record(105, 900, TimestampType.CREATE_TIME, None, b"value", (), 4),
    ]


def test_a_log_append_time_batch_gives_its_time_to_every_record():
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=7_777)
    builder.append(1, b"a", b"b")
    builder.append(2, b"a", b"b")
    records = records_of(builder.build())
    assert [record.timestamp for record in records] == [7_777, 7_777]
    assert {record.timestamp_type for record in records} == {TimestampType.LOG_APPEND_TIME}


def test_records_without_a_producer_have_no_sequence():
    builder = BatchBuilder()
    builder.append(1, b"a", b"b")
    assert records_of(builder.build())[0].sequence == -1


def test_an_emptied_batch_has_no_records():
    data = empty_batch(
        base_offset=5,
        last_offset=9,
        timestamp_type=TimestampType.CREATE_TIME,
        max_timestamp=3,
        producer_id=1,
        producer_epoch=0,
        base_sequence=4,
        transactional=False,
        control=False,
        leader_epoch=2,
    )
    assert records_of(data) == []


def test_a_count_that_does_not_fit_the_records_is_refused():
    builder = BatchBuilder()
    builder.append(1, b"a", b"b")
    data = bytearray(builder.build())
    data[57:61] = (2).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="record 1 is broken"):
        records_of(data)
    builder.append(1, b"a", b"b")
    data = bytearray(builder.build())
    data[57:61] = (1).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="bytes follow the last of 1 records"):
        records_of(data)
    data[57:61] = b"\xff\xff\xff\xff"
    with pytest.raises(CorruptBatch, match="record count is -1"):
        records_of(data)


def test_an_unknown_codec_is_refused():
    builder = BatchBuilder()
    builder.append(1, b"a", b"b")
    data = bytearray(builder.build())
    data[22] = 5
    with pytest.raises(CorruptBatch, match="unknown compression codec 5"):
        records_of(data)
