"""BatchBuilder: defaults, deltas, and what it refuses as Kafka's builder does."""

import pytest

from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.builder import BatchBuilder, empty_batch
from tailrace.records.record import Record, TimestampType, iter_records


def view(data: bytes) -> RecordBatch:
    batch = RecordBatch(memoryview(data))
    batch.check()
    return batch


def test_a_builder_without_records_builds_nothing():
    assert BatchBuilder().build() == b""


def test_the_base_timestamp_is_the_first_and_the_max_timestamp_the_largest():
    builder = BatchBuilder(base_offset=3)
    for timestamp in (50, 70, 70, 10):
        builder.append(timestamp, b"k", b"v")
    batch = view(builder.build())
    assert (batch.base_timestamp, batch.max_timestamp) == (50, 70)
    assert builder.offset_of_max_timestamp == 4
    assert builder.next_offset == 7


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp():
    builder = BatchBuilder(delete_horizon_ms=9_000)
    builder.append(50, b"k", None)
    batch = view(builder.build())
    assert batch.delete_horizon_ms == batch.base_timestamp == 9_000
    assert [record.timestamp for record in iter_records(batch)] == [50]


def test_the_last_offset_may_lie_past_the_last_record():
    builder = BatchBuilder(base_offset=10)
    builder.append(1, b"k", b"v", offset=12)
    batch = view(builder.build(last_offset=19))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 19, 1)


def test_records_keep_their_own_offsets():
    builder = BatchBuilder(base_offset=10, codec=Codec.ZSTD)
    records = [Record(offset, 5, TimestampType.CREATE_TIME, b"k", b"v") for offset in (11, 15, 16)]
    builder.extend(records)
    assert list(iter_records(view(builder.build()))) == records


def test_encoded_records_make_the_same_batch():
    builder, encoded = BatchBuilder(base_offset=4), BatchBuilder(base_offset=4)
    for offset in (4, 6):
        builder.append(offset * 10, b"k", b"v", offset=offset)
    data = builder.build()
    encoded.append_encoded(data[61:], 2, 40, 60, 6)
    assert encoded.build() == data
    with pytest.raises(ValueError, match="does not follow"):
        encoded.append_encoded(data[61:], 2, 40, 60, 6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timestamp_type": TimestampType.NO_TIMESTAMP}, "timestamp type"),
        ({"transactional": True}, "producer id"),
        ({"producer_id": 1, "base_sequence": 0}, "epoch"),
        ({"producer_id": 1, "producer_epoch": 0}, "sequence"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        BatchBuilder(**options)


def test_a_control_batch_needs_no_sequence():
    builder = BatchBuilder(producer_id=1, producer_epoch=0, transactional=True, control=True)
    builder.append(1, b"\0\0\0\1", b"\0\0\0\0\0\0")
    assert view(builder.build()).is_control


def test_records_with_invalid_offsets_or_timestamps_are_refused():
    builder = BatchBuilder(base_offset=5)
    builder.append(1, b"k", b"v")
    with pytest.raises(ValueError, match="offset 5 does not follow 5"):
        builder.append(1, b"k", b"v", offset=5)
    with pytest.raises(ValueError, match="too far"):
        builder.append(1, b"k", b"v", offset=5 + 2**31)
    with pytest.raises(ValueError, match="negative"):
        builder.append(-2, b"k", b"v")
    builder.append(-1, b"k", b"v")
    assert builder.record_count == 2


def test_an_emptied_batch_keeps_the_producers_last_sequence():
    batch = view(
        empty_batch(
            base_offset=5,
            last_offset=9,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            max_timestamp=3,
            producer_id=1,
            producer_epoch=2,
            base_sequence=4,
            transactional=True,
            control=False,
            leader_epoch=2,
        )
    )
    assert (batch.size, batch.record_count, batch.base_timestamp, batch.max_timestamp) == (61, 0, -1, 3)
    assert (batch.last_offset, batch.last_sequence, batch.producer_id) == (9, 8, 1)
    assert batch.is_log_append_time
    assert batch.is_transactional
