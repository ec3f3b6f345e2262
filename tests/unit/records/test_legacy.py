"""Messages of formats 0 and 1, alone and in wrappers."""

import zlib

import pytest

from tailrace.records.batch import Codec, CorruptBatch
from tailrace.records.codecs.compression import compress
from tailrace.records.legacy import (
    Message,
    build_messages,
    check_message,
    encode_message,
    iter_messages,
    split_messages,
)
from tailrace.records.record import Record, TimestampType

CREATE, APPEND, NONE = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME, TimestampType.NO_TIMESTAMP
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def rows(*offsets: int, kind: TimestampType = CREATE) -> list[Record]:
    return [Record(offset, 1000 + offset, kind, b"k%d" % offset, b"v" * offset) for offset in offsets]


def test_a_v0_message_byte_by_byte():
    body = bytes.fromhex("0000" + "00000001" + "6b" + "ffffffff")
    crc = zlib.crc32(body).to_bytes(4, "big")
    data = encode_message(0, 7, -1, b"k", None)
    assert data == (7).to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + crc + body
    assert list(iter_messages(data)) == [Record(7, -1, NONE, b"k", None)]


def test_a_v1_message_byte_by_byte():
    body = bytes.fromhex("0108" + "0000000000000005" + "ffffffff" + "00000002" + "7676")
    data = encode_message(1, 7, 5, None, b"vv", timestamp_type=APPEND)
    assert data[16:] == body
    assert list(iter_messages(data)) == [Record(7, 5, APPEND, None, b"vv")]


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_built_messages_are_read_with_their_offsets_and_gaps(magic, codec):
    data = build_messages(rows(40, 41, 45), magic=magic, codec=codec)
    messages = list(split_messages(data))
    assert len(messages) == (3 if codec == Codec.NONE else 1)
    assert messages[-1].offset == 45
    for message in messages:
        message.check()
    expected = rows(40, 41, 45)
    if magic == 0:
        expected = [record._replace(timestamp=-1, timestamp_type=NONE) for record in expected]
    assert list(iter_messages(data)) == expected


def test_offsets_inside_a_v1_wrapper_are_relative_and_inside_a_v0_wrapper_absolute():
    for magic, inside in ((1, [0, 1, 5]), (0, [40, 41, 45])):
        (wrapper,) = split_messages(build_messages(rows(40, 41, 45), magic=magic, codec=Codec.GZIP))
        assert [message.offset for message, *_ in wrapper.inner()] == inside


def test_a_wrapper_at_offset_zero_leaves_the_inner_offsets_alone():
    data = bytearray(build_messages(rows(0, 1, 2), magic=1, codec=Codec.GZIP))
    data[:8] = bytes(8)
    assert [record.offset for record in iter_messages(data)] == [0, 1, 2]


def test_a_wrapper_with_append_time_gives_its_time_to_everything_inside():
    data = build_messages(rows(1, 2), magic=1, codec=Codec.LZ4, timestamp_type=APPEND, log_append_time_ms=9_999)
    assert [(record.timestamp, record.timestamp_type) for record in iter_messages(data)] == [(9_999, APPEND)] * 2


def test_the_wrapper_has_the_largest_timestamp():
    (wrapper,) = split_messages(build_messages(rows(5, 3 + 4), magic=1, codec=Codec.SNAPPY))
    assert wrapper.timestamp == 1007


def test_any_changed_byte_fails_the_checksum():
    good = encode_message(1, 7, 5, b"key", b"value")
    check_message(memoryview(good))
    for position in range(17, len(good)):
        bad = bytearray(good)
        bad[position] ^= 1
        with pytest.raises(CorruptBatch):
            check_message(memoryview(bad))


def test_the_offset_is_not_covered_by_the_checksum():
    data = bytearray(encode_message(1, 7, 5, b"key", b"value"))
    data[:8] = (1234).to_bytes(8, "big")
    (again,) = split_messages(data)
    again.check()
    assert again.offset == 1234


def wrap(inner: bytes, *, magic: int = 1, offset: int = 9, codec: Codec = Codec.GZIP) -> bytes:
    return encode_message(magic, offset, 5, None, compress(codec, inner, magic=magic), codec=codec)


def test_an_incomplete_message_inside_a_wrapper_is_ignored():
    inner = encode_message(1, 0, 5, b"a", b"b")
    assert len(list(iter_messages(wrap(inner + inner[:-1])))) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (wrap(b""), "no messages inside"),
        (wrap(encode_message(1, 50, 5, b"a", b"b")), "but the last message inside has 50"),
        (wrap(wrap(encode_message(1, 0, 5, b"a", b"b"))), "itself compressed"),
        (wrap(b"\0" * 20), "less than an empty message"),
        (encode_message(1, 9, 5, None, None, codec=Codec.GZIP), "has no value"),
        (encode_message(1, 9, 5, None, b"not gzip", codec=Codec.GZIP), "gzip"),
        (encode_message(1, 9, 5, None, b"x", codec=Codec.ZSTD), "zstd"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_wrappers_are_refused(data, words):
    with pytest.raises(CorruptBatch, match=words):
        list(iter_messages(data))


def test_fields_that_run_past_the_message_are_refused():
    data = bytearray(encode_message(1, 7, 5, b"key", b"value"))
    data[26:30] = (1000).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="runs past its end"):
        list(iter_messages(data))
    with pytest.raises(CorruptBatch, match="ends inside a field"):
        Message(memoryview(encode_message(0, 7, -1, b"k" * 4, None)))._field(31)


@pytest.mark.parametrize("size", [5, 25, 33, 40])
def test_bytes_that_are_not_a_whole_message_are_refused(size):
    data = encode_message(1, 7, 5, b"key", b"value")
    with pytest.raises(CorruptBatch):
        list(split_messages(data + data[:size]))


def test_records_that_old_formats_cannot_express_are_refused():
    with pytest.raises(ValueError, match="zstd"):
        build_messages(rows(1), magic=1, codec=Codec.ZSTD)
    with pytest.raises(ValueError, match="headers"):
        build_messages([rows(1)[0]._replace(headers=(("h", b"x"),))], magic=1)
    with pytest.raises(ValueError, match="magic 2"):
        encode_message(2, 0, 0, b"", b"")
    with pytest.raises(ValueError, match="does not follow"):
        build_messages(rows(2, 2), magic=1)
    with pytest.raises(ValueError, match="negative"):
        encode_message(1, 0, -5, b"", b"")
