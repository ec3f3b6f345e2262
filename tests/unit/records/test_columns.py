"""Record columns by example; tests/property compares the compiled ones with the interpreted."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.columnar import columns
from tailrace.records.columnar.columns import RecordColumns
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, RecordHeader, TimestampType
from tests.support.batches import batch, end_marker
from tests.support.column_rows import rows

EVERYTHING = (1 << 13) - 1
ALL = (0, 2**63 - 1)


def read(data: bytes | bytearray, wanted: int = EVERYTHING, bounds: tuple[int, int] = ALL, **more: Any) -> list[dict]:
    found = RecordColumns(wanted, *bounds, **more)
    assert found.put_batches(data, 0, len(data)) == len(data) or found.is_done
    return rows(columns, found)


def placed(data: bytearray, offset: int) -> bytearray:
    data[:8] = offset.to_bytes(8, "big")
    return data


def offsets(data: bytes | bytearray, **more: Any) -> list[int]:
    return [row["OFFSET"] for row in read(data, columns.OFFSET, **more)]


def test_a_batch_becomes_rows() -> None:
    data = batch((b"k", b"v"), (None, b""), (b"", None), timestamp=[5, 7, 6], leader_epoch=3, base_offset=40)
    assert read(data) == [
        {
            "OFFSET": 40 + n,
            "TIMESTAMP": time * 1000,
            "TIMESTAMP_TYPE": 0,
            "KEY": key,
            "VALUE": value,
            "HEADERS": None,
            "LEADER_EPOCH": 3,
            "PRODUCER_ID": -1,
            "PRODUCER_EPOCH": -1,
            "BASE_SEQUENCE": -1,
            "BATCH_OFFSET": 40,
            "BATCH_SIZE": len(data),
            "ATTRIBUTES": 0,
        }
        for n, (time, key, value) in enumerate([(5, b"k", b"v"), (7, None, b""), (6, b"", None)])
    ]


def test_rows_have_the_producer_fields_of_their_batch() -> None:
    data = batch(b"a", b"b", producer_id=77, producer_epoch=5, sequence=9, transactional=True, codec=Codec.LZ4)
    for row in read(data):
        facts = [row[name] for name in ("PRODUCER_ID", "PRODUCER_EPOCH", "BASE_SEQUENCE", "ATTRIBUTES")]
        assert facts == [77, 5, 9, 0x13]


@pytest.mark.parametrize("codec", Codec)
def test_every_codec_is_read(codec: Codec) -> None:
    assert [row["VALUE"] for row in read(batch(*[b"value %d" % n for n in range(300)], codec=codec))] == [
        b"value %d" % n for n in range(300)
    ]


def test_headers_keep_their_order_and_double_keys() -> None:
    builder = BatchBuilder()
    pairs = [RecordHeader("a", b"1"), RecordHeader("ä", None), RecordHeader("a", b"")]
    builder.append(1, None, b"with", pairs)
    builder.append(1, None, b"without")
    assert [row["HEADERS"] for row in read(builder.build(), columns.HEADERS)] == [
        [("a", b"1"), ("ä", None), ("a", b"")],
        None,
    ]


def test_a_header_key_that_is_not_utf8_is_read_as_java_reads_it() -> None:
    builder = BatchBuilder()
    builder.append(1, None, b"v", [RecordHeader("xy", b"1")])
    data = bytearray(builder.build())
    at = data.index(b"xy")
    data[at : at + 2] = b"\xff\xfe"
    fixed = RecordBatch(memoryview(data))
    data[17:21] = fixed.computed_crc().to_bytes(4, "big")
    assert read(data, columns.HEADERS) == [{"HEADERS": [("\ufffd\ufffd", b"1")]}]


def test_log_append_time_is_the_timestamp_of_every_record() -> None:
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=900)
    builder.append(5, None, b"a")
    builder.append(7, None, b"b")
    assert (
        read(builder.build(), columns.TIMESTAMP | columns.TIMESTAMP_TYPE)
        == [{"TIMESTAMP": 900_000, "TIMESTAMP_TYPE": 1}] * 2
    )


def test_records_before_the_start_offset_are_dropped() -> None:
    data = batch(b"a", b"b", b"c", base_offset=10) + batch(b"d", b"e", base_offset=13)
    assert offsets(data, bounds=(12, 14)) == [12, 13]


def test_reading_ends_at_the_first_batch_past_the_end_offset() -> None:
    data = batch(b"a", base_offset=10) + batch(b"b", base_offset=11)
    found = RecordColumns(columns.OFFSET, 0, 11)
    assert found.put_batches(data, 0, len(data)) == len(data) // 2
    assert found.is_done
    assert found.next_offset == 11


def test_bytes_after_the_end_offset_need_not_be_batches() -> None:
    data = batch(b"a", b"b", base_offset=10) + bytes(100)
    found = RecordColumns(columns.OFFSET, 0, 12)
    assert found.put_batches(data, 0, len(data)) == len(data) - 100
    assert found.is_done


def test_the_start_offset_can_be_moved_up_while_reading() -> None:
    data = batch(b"a", b"b", b"c", b"d", base_offset=10)
    found = RecordColumns(columns.OFFSET, 0, 100)
    found.skip_to(12)
    found.put_batches(data, 0, len(data))
    assert [row["OFFSET"] for row in rows(columns, found)] == [12, 13]


def test_gaps_of_compaction_are_not_damage() -> None:
    builder = BatchBuilder(base_offset=10)
    builder.append(1, b"k", b"v", offset=12)
    builder.append(1, b"k", b"v", offset=19)
    data = bytearray(builder.build()) + batch(b"x", base_offset=50)
    assert offsets(data) == [12, 19, 50]


def test_control_batches_give_no_rows_and_advance_the_offset() -> None:
    data = batch(b"a", base_offset=5) + placed(end_marker(7, commit=True), 6)
    found = RecordColumns(columns.OFFSET, 0, 100)
    assert found.put_batches(data, 0, len(data)) == len(data)
    assert (found.rows, found.next_offset) == (1, 7)


def test_aborted_transactions_are_left_out_between_their_bounds_only() -> None:
    def of(producer: int, offset: int, transactional: bool = True) -> bytearray:
        return batch(b"x", producer_id=producer, sequence=0, transactional=transactional, base_offset=offset)

    data = of(1, 10) + of(2, 11) + of(1, 12) + of(1, 13, transactional=False) + of(1, 20)
    assert offsets(data, aborted={1: [(10, 14)]}) == [11, 13, 20]


def test_times_outside_the_bounds_are_left_out() -> None:
    data = batch(*[b"x"] * 5, timestamp=[1, 9, 5, 3, 7])
    assert offsets(data, min_timestamp=3, max_timestamp=7) == [2, 3, 4]


def test_a_batch_before_the_time_range_is_not_read() -> None:
    early = batch(b"a", timestamp=10)
    early[-1] ^= 1  # its checksum is wrong, and nobody looks
    assert offsets(early + batch(b"b", timestamp=20, base_offset=1), min_timestamp=15) == [1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_messages_of_old_formats_become_rows(magic: int, codec: Codec) -> None:
    records = [Record(30 + n, 100 + n, TimestampType.CREATE_TIME, b"k", None if n == 1 else b"v") for n in range(3)]
    data = build_messages(records, magic=magic, codec=codec)
    found = read(data, bounds=(31, 33))
    assert [row["OFFSET"] for row in found] == [31, 32]
    assert [row["VALUE"] for row in found] == [None, b"v"]
    assert [row["TIMESTAMP"] for row in found] == ([-1000, -1000] if magic == 0 else [101_000, 102_000])
    assert [row["TIMESTAMP_TYPE"] for row in found] == [-1 if magic == 0 else 0] * 2
    assert [row["HEADERS"] for row in found] == [None, None]


def test_an_incomplete_batch_is_left_for_the_next_call() -> None:
    first, second = batch(b"a"), batch(b"b", base_offset=1)
    found = RecordColumns(columns.OFFSET, *ALL)
    for size in range(len(second)):
        data = first + second[:size]
        assert found.put_batches(data, 0, len(data)) == len(first)


def test_reading_stops_when_the_columns_are_full() -> None:
    data = b"".join(batch(b"x" * 100, b"y", base_offset=2 * n) for n in range(10))
    found = RecordColumns(columns.VALUE, *ALL, max_rows=4)
    seen = []
    position = 0
    while position < len(data):
        position = found.put_batches(data, position, len(data))
        assert found.rows <= 4
        seen.append(found.rows)
        found.reset()
    assert seen == [4, 4, 4, 4, 4]


def test_columns_grow_beyond_their_first_size() -> None:
    values = [None if n % 7 == 0 else b"%05d" % n * 10 for n in range(5000)]
    data = batch(*values)
    assert [row["VALUE"] for row in read(data, columns.VALUE)] == values


def test_a_wrong_checksum_is_reported_with_its_position() -> None:
    data = batch(b"a") + batch(b"b", base_offset=1)
    data[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum does not match") as caught:
        read(data)
    assert caught.value.position == len(data) // 2


def test_an_impossible_record_count_is_refused_before_memory_is_allocated() -> None:
    data = batch(b"a")
    data[57:61] = (2**31 - 1).to_bytes(4, "big")
    data[17:21] = RecordBatch(memoryview(data)).computed_crc().to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="2147483647 records cannot be in"):
        read(data)


def test_a_timestamp_too_large_for_microseconds_is_an_error_only_if_timestamps_are_requested() -> None:
    data = batch(b"a", timestamp=2**62)
    assert len(read(data, columns.VALUE)) == 1
    with pytest.raises(CorruptBatch, match="timestamp 4611686018427387904 of offset 0"):
        read(data, columns.TIMESTAMP)


def test_a_format_1_timestamp_too_large_for_microseconds_is_an_error_only_if_requested() -> None:
    data = build_messages([Record(4, 2**63 - 1, TimestampType.CREATE_TIME, b"k", b"v")], magic=1)
    with pytest.raises(CorruptBatch, match="the timestamp 9223372036854775807 of offset 4 does not fit"):
        read(data, columns.TIMESTAMP)
    assert read(data, columns.OFFSET) == [{"OFFSET": 4}]


def test_unknown_magic_and_invalid_lengths_are_reported() -> None:
    data = batch(b"a")
    data[16] = 9
    with pytest.raises(CorruptBatch, match="unknown magic 9"):
        read(data)
    data = batch(b"a")
    data[8:12] = (3).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="length 3 is too small"):
        read(data)


def test_an_empty_buffer_gives_no_rows() -> None:
    assert read(b"") == []
