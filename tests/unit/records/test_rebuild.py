"""A batch with some of its records: what stays and what changes."""

import pytest

from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.compression import decompress
from tailrace.records.rebuild import rebuild_batch
from tailrace.records.record import TimestampType, iter_records


def original(codec: Codec = Codec.NONE, **options) -> RecordBatch:
    builder = BatchBuilder(
        base_offset=10, codec=codec, producer_id=1, producer_epoch=2, base_sequence=3, leader_epoch=4, **options
    )
    for index in range(4):
        builder.append(1000 - index, b"k%d" % index, None if index == 3 else b"v", [("é", b"x")])
    return RecordBatch(memoryview(builder.build()))


@pytest.mark.parametrize("codec", list(Codec))
def test_offsets_and_producer_stay_and_the_base_timestamp_moves(codec):
    batch = RecordBatch(memoryview(rebuild_batch(original(codec), b"\0\1\0\0")))
    batch.check()
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 13, 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.leader_epoch) == (1, 2, 3, 4)
    assert (batch.codec, batch.base_timestamp, batch.max_timestamp) == (codec, 999, 999)
    (record,) = iter_records(batch)
    assert (record.offset, record.timestamp, record.key, record.sequence) == (11, 999, b"k1", 4)
    assert record.headers == (("é", b"x"),)


def test_a_delete_horizon_becomes_the_base_of_the_timestamps():
    batch = RecordBatch(memoryview(rebuild_batch(original(), b"\1\1\1\1", delete_horizon_ms=77)))
    assert batch.delete_horizon_ms == 77
    assert list(iter_records(batch)) == list(iter_records(original()))


def test_a_payload_at_hand_is_not_decompressed_again():
    batch = original(Codec.GZIP)
    payload = decompress(Codec.GZIP, batch.payload)
    assert rebuild_batch(batch, b"\1\0\1\0", payload=payload) == rebuild_batch(batch, b"\1\0\1\0")


def test_append_time_becomes_every_records_own_timestamp():
    batch = original(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=5_000)
    new = RecordBatch(memoryview(rebuild_batch(batch, b"\1\0\0\1")))
    assert (new.is_log_append_time, new.base_timestamp, new.max_timestamp) == (True, 5_000, 5_000)


def test_without_records_there_is_no_batch():
    assert rebuild_batch(original(), bytes(4)) == b""


def test_too_few_flags_are_a_mistake():
    with pytest.raises(ValueError, match="3 flags for 4 records"):
        rebuild_batch(original(), b"\1\1\1")
