"""The kernels by example; tests/property compares the compiled ones with the interpreted."""

import struct

import pytest

from tailrace.log.segments.indexes import index_kernels
from tailrace.records import header_kernels, kernels
from tailrace.records.batch import HEADER, CorruptBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks import check_kernels
from tailrace.records.codecs import codec_kernels
from tailrace.records.legacy import encode_message


def payload(*rows) -> bytes:
    out = bytearray()
    for offset_delta, timestamp_delta, key, value in rows:
        kernels.encode_record(out, offset_delta, timestamp_delta, key, value, ())
    return bytes(out)


ROWS = ((0, 5, b"a", b"1"), (1, 9, None, b"2"), (2, -3, b"b", None), (3, 9, b"a", b"4"))


# --- records ---


def walked(
    data: bytes | bytearray, count: int, base_timestamp: int, check_sizes: bool, **rules
) -> check_kernels.RecordWalk:
    walk = check_kernels.RecordWalk(count, base_timestamp, check_sizes, **rules)
    walk.feed(data, True)
    return walk


def test_a_walk_has_count_order_and_largest_timestamp_of_the_records():
    walk = walked(payload(*ROWS), 4, 100, True)
    assert (walk.index, walk.sequential, walk.largest, walk.refused) == (4, True, 109, 0)


def test_a_walk_finds_records_without_a_required_key():
    walk = walked(payload(*ROWS), 4, 100, True, needs_keys=True, found_max=9)
    assert (walk.refused, walk.found) == (1, [(1, 1, 109, False)])


def test_timestamps_of_minus_one_are_within_any_bounds():
    rows = payload((0, -1, b"a", b""), (1, 7, b"a", b""))
    walk = walked(rows, 2, 0, True, earliest=3, latest=5, found_max=9)
    assert (walk.largest, walk.refused, walk.found) == (7, 1, [(1, 1, 7, True)])
    assert walked(payload((0, -1, b"a", b"")), 1, 0, True).largest == -1
    assert walked(rows, 2, 0, True, earliest=5, latest=3).refused == 2


def test_timestamps_overflow_like_java_longs():
    rows = payload((0, 1, b"a", b""), (1, -1, b"a", b""))
    found = walked(rows, 2, 2**63 - 1, True, earliest=1, latest=0, found_max=9).found
    assert found == [(0, 0, -(2**63), True), (1, 1, 2**63 - 2, True)]


def test_a_walk_detects_gaps_in_the_offset_deltas():
    assert walked(payload((0, 0, b"a", b""), (2, 0, b"a", b"")), 2, 0, True).sequential is False


def test_a_record_with_a_wrong_length_is_accepted_only_without_check_sizes():
    data = bytearray(payload(*ROWS))
    data[0] += 2
    assert walked(data, 4, 100, False).index == 4
    with pytest.raises(CorruptBatch, match="record 0 is broken"):
        walked(data, 4, 100, True)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_too_few_and_too_many_records_are_refused(count):
    with pytest.raises(CorruptBatch, match=r"follow the last|is broken"):
        walked(payload(*ROWS), count, 0, True)


def test_every_cut_of_a_payload_is_refused():
    whole = payload(*ROWS)
    for size in range(len(whole)):
        with pytest.raises(CorruptBatch):
            walked(whole[:size], 4, 0, False)
        with pytest.raises(CorruptBatch):
            kernels.decode_records(whole[:size], 4)


@pytest.mark.parametrize(
    ("min_offset", "min_timestamp", "found"),
    [
        (0, 0, (50, 105)),
        (0, 106, (51, 109)),
        (52, 106, (53, 109)),
        (52, 0, (52, 97)),
        (53, 97, (53, 109)),
        (54, 0, None),
        (0, 110, None),
    ],
)
def test_find_record_returns_the_first_record_at_or_past_both_bounds(min_offset, min_timestamp, found):
    assert kernels.find_record(payload(*ROWS), 4, 50, 100, min_offset, min_timestamp) == found


def test_rewritten_records_have_canonical_varints_and_utf8_header_keys():
    """Header keys that are not UTF-8 and varints that are longer than they need be."""
    out = bytearray()
    kernels.encode_record(out, 0, 0, b"k", b"v", [(b"\xff", b"x")])
    long_key_length = bytes([26]) + b"\0\0\0" + b"\x82\x00" + b"k" + b"\x02v" + b"\x02" + b"\x02\xff\x02x"
    assert kernels.decode_records(long_key_length, 1) == kernels.decode_records(bytes(out), 1)
    expected = bytearray()
    kernels.encode_record(expected, 0, 0, b"k", b"v", [("\ufffd".encode(), b"x")])
    for source in (bytes(out), long_key_length):
        assert kernels.rewrite_records(source, 1, b"\1", 7, None, None) == (bytes(expected), 7, 7, 1)


def test_a_negative_timestamp_cannot_be_written_again():
    with pytest.raises(ValueError, match="timestamp -5 is negative"):
        kernels.rewrite_records(payload((0, -5, b"a", b"")), 1, b"\1", 0, None, None)


# --- batches ---


def batches() -> bytes:
    data = b""
    for base_offset, size in ((0, 1), (5, 3), (20, 2)):
        builder = BatchBuilder(base_offset=base_offset, leader_epoch=2)
        for index in range(size):
            builder.append(100 + base_offset + index, b"k", b"v")
        data += builder.build()
    return data + encode_message(1, 30, 77, b"k", b"v") + encode_message(0, 31, -1, b"k", b"v")


def test_the_batch_that_holds_or_follows_an_offset_is_found():
    data = batches()
    positions = [fields[0] for fields in header_kernels.scan_batches(data, 0, len(data))[0]]
    for offset, index in ((0, 0), (1, 1), (6, 1), (8, 2), (21, 2), (22, 3), (31, 4)):
        position, size, base_offset, last_offset = header_kernels.find_batch(data, 0, len(data), offset)
        assert position == positions[index]
        assert base_offset <= last_offset >= offset
        assert size > 0
    assert header_kernels.find_batch(data, 0, len(data), 32) == (len(data), 0, -1, -1)


def test_find_batch_returns_the_position_of_an_incomplete_header():
    data = batches()
    second = header_kernels.scan_batches(data, 0, len(data))[0][1][0]
    assert header_kernels.find_batch(data, 0, second + 20, 9) == (second, 0, -1, -1)
    assert header_kernels.find_batch(data, 0, second + 61, 6)[0] == second  # the header is enough


def test_a_scan_gives_every_header_field():
    data = batches()
    found, position, problem = header_kernels.scan_batches(data, 0, len(data))
    assert (len(found), position, problem) == (5, len(data), None)
    crc = int.from_bytes(data[17:21], "big")
    assert found[0] == (0, found[1][0], 0, 0, 2, 2, crc, 0, 100, 100, -1, -1, -1, 1)
    old = found[3]
    assert old[2:6] == (30, 30, -1, 1)
    assert old[8:] == (77, 77, -1, -1, -1, -1)
    assert found[4][8:10] == (-1, -1)


def test_a_scan_ends_without_an_error_at_a_torn_tail_and_with_one_at_invalid_bytes():
    data = bytearray(batches())
    second = header_kernels.scan_batches(data, 0, len(data))[0][1][0]
    assert header_kernels.scan_batches(data, 0, second + 70)[1:] == (second, None)
    assert header_kernels.scan_batches(data + bytes(40), 0, len(data) + 40)[1:] == (
        len(data),
        "batch length 0 is too small for magic 0",
    )
    data[second + 16] = 7
    assert header_kernels.scan_batches(data, 0, len(data))[1:] == (second, "magic 7 is unknown")


def test_a_range_outside_the_buffer_is_a_value_error():
    for call in (header_kernels.scan_batches, lambda *bounds: header_kernels.find_batch(*bounds, 0)):
        for bounds in ((b"x" * 30, -1, 30), (b"x" * 30, 0, 31)):
            with pytest.raises(ValueError, match="not inside"):
                call(*bounds)


def test_an_impossible_batch_length_ends_a_search_with_an_error():
    with pytest.raises(CorruptBatch, match="batch length -5 is too small"):
        header_kernels.find_batch(bytes(8) + b"\xff\xff\xff\xfb" + bytes(60), 0, 72, 0)


# --- indexes ---


def test_the_last_entry_up_to_the_target_is_found():
    offsets = [3, 4, 90, 2**31 - 1]
    index = b"".join(struct.pack(">ii", offset, 100 + position) for position, offset in enumerate(offsets))
    for target in (-1, 0, 2, 3, 4, 5, 89, 90, 2**31 - 1, 2**62):
        expected = sum(offset <= target for offset in offsets) - 1
        assert index_kernels.offset_index_slot(index, 4, target) == expected
    assert [index_kernels.position_index_slot(index, 4, position) for position in (99, 100, 102, 500)] == [-1, 0, 2, 3]
    assert index_kernels.offset_index_slot(index, 2, 1000) == 1
    assert index_kernels.offset_index_slot(index, 0, 1000) == -1


def test_time_index_searches_use_64_bit_timestamps():
    times = [-1, 5, 2**40, 2**62]
    index = b"".join(struct.pack(">qi", time, 1) for time in times)
    for target in (-2, -1, 0, 5, 2**40 - 1, 2**40, 2**63 - 1):
        assert index_kernels.time_index_slot(index, 4, target) == sum(time <= target for time in times) - 1


def test_more_index_entries_than_bytes_are_a_value_error():
    for search in (index_kernels.offset_index_slot, index_kernels.position_index_slot, index_kernels.time_index_slot):
        with pytest.raises(ValueError, match="do not fit"):
            search(bytes(16), 3, 0)


# --- codecs ---


def test_xxh32_check_values():
    assert codec_kernels.xxh32(b"") == 0x02CC5D05
    assert codec_kernels.xxh32(b"abc") == 0x32D153FF
    assert codec_kernels.xxh32(bytes(range(101))) == 0x1A20E95B


# --- the header of a client's batch ---


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, check_kernels.NO_FAULT),
        ({6: -1}, check_kernels.NEGATIVE_OFFSET_DELTA),
        ({12: 0}, check_kernels.NO_RECORDS),
        ({12: -5}, check_kernels.NO_RECORDS),
        ({12: 2}, check_kernels.WRONG_RECORD_COUNT),
        ({5: 0x20}, check_kernels.IS_CONTROL_BATCH),
        ({9: 7, 11: -1}, check_kernels.NO_SEQUENCE_NUMBER),
        ({9: 7, 11: 0}, check_kernels.NO_FAULT),
        ({6: -1, 12: 0, 5: 0x20}, check_kernels.NEGATIVE_OFFSET_DELTA),
    ],
)
def test_a_header_is_reported_by_the_first_rule_that_it_breaks(change, fault):
    builder = BatchBuilder()
    builder.append(5, b"k", b"v")
    data = bytearray(builder.build())
    fields = list(HEADER.unpack_from(data))
    for field, value in change.items():
        fields[field] = value
    HEADER.pack_into(data, 0, *fields)
    assert check_kernels.header_fault(data) == fault


def test_bytes_shorter_than_a_header_are_a_value_error():
    with pytest.raises(ValueError, match="60 bytes are too few for a batch header"):
        check_kernels.header_fault(bytes(60))
