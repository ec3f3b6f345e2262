"""RecordBatch: the header as laid out, and what may be changed in place."""

import pytest

from tailrace.records.batch import Codec, CorruptBatch, RecordBatch, increment_sequence, split_batches
from tailrace.records.builder import BatchBuilder


def build(**options):
    builder = BatchBuilder(**options)
    builder.append(1000, b"k", b"v")
    builder.append(990, None, b"w")
    return bytearray(builder.build())


def view(data) -> RecordBatch:
    (batch,) = split_batches(data)
    return batch


def test_every_field_is_where_the_format_says():
    data = build(
        base_offset=7,
        codec=Codec.LZ4,
        producer_id=11,
        producer_epoch=12,
        base_sequence=13,
        transactional=True,
        leader_epoch=14,
    )
    assert data[:8] == (7).to_bytes(8, "big")
    assert int.from_bytes(data[8:12], "big") == len(data) - 12
    assert data[12:16] == (14).to_bytes(4, "big")
    assert data[16] == 2
    assert data[21:23] == b"\x00\x13"
    assert data[23:27] == (1).to_bytes(4, "big")
    assert data[27:35] == data[35:43] == (1000).to_bytes(8, "big")
    assert data[43:51] + data[51:53] + data[53:57] == bytes(7) + b"\x0b\x00\x0c\x00\x00\x00\x0d"
    assert data[57:61] == (2).to_bytes(4, "big")


def test_the_offset_and_epoch_can_be_set_without_touching_the_checksum():
    data = build()
    batch = view(data)
    before = batch.crc
    batch.set_offset_and_epoch(500, 6)
    again = view(data)
    again.check()
    assert (again.base_offset, again.last_offset, again.next_offset) == (500, 501, 502)
    assert (again.leader_epoch, again.crc) == (6, before)


def test_the_checksum_is_computed_again_only_when_the_timestamp_or_its_type_changes():
    data = build()
    original = bytes(data)
    batch = view(data)
    batch.set_max_timestamp(1000, log_append_time=False)
    assert data == original
    batch.set_max_timestamp(1000, log_append_time=True)
    again = view(data)
    again.check()
    assert again.is_log_append_time
    assert again.crc != view(original).crc


def test_undefined_attribute_bits_are_cleared_by_a_change():
    data = build()
    data[21:23] = b"\x7f\x80"
    view(data).set_max_timestamp(5, log_append_time=True)
    assert data[21:23] == b"\x00\x08"


@pytest.mark.parametrize("position", [21, 22, 40, 60, 61, -1])
def test_a_change_of_any_byte_under_the_checksum_is_detected(position):
    data = build()
    data[position] ^= 4
    with pytest.raises(CorruptBatch, match="checksum does not match"):
        view(data).check()


def test_bytes_that_are_not_a_whole_batch_are_refused():
    data = build()
    with pytest.raises(CorruptBatch, match="bytes follow the last batch"):
        list(split_batches(data + data[:40]))
    with pytest.raises(CorruptBatch, match="batch length gives"):
        list(split_batches(data[:-1]))


def test_sequences_start_again_at_zero_after_the_largest_int():
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 3) == 1
    batch = view(build(producer_id=1, producer_epoch=0, base_sequence=2**31 - 1))
    assert batch.last_sequence == 0


def test_an_error_at_a_position_names_file_and_position():
    error = CorruptBatch("checksum does not match").at("orders-3/00000000000000170000.log", 81920)
    assert str(error) == "orders-3/00000000000000170000.log at position 81920: checksum does not match"
