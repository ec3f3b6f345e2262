"""Primitive types: bytes as the protocol has them, and no belief in lengths."""

from __future__ import annotations

import tracemalloc

import pytest

from tailrace.protocol.errors import MalformedMessage, UnwritableMessage
from tailrace.protocol.primitives import Reader, Writer, read_numbers, read_strings, read_uuids, uvarint, write_tags


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, b"\x00"),
        (1, b"\x01"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (2**31 - 1, b"\xff\xff\xff\xff\x07"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_uvarint(value: int, written: bytes) -> None:
    assert uvarint(value) == written
    reader = Reader(written + b"rest")
    assert reader.uvarint() == value
    assert reader.position == len(written)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_uvarint_has_32_bits(value: int) -> None:
    with pytest.raises(UnwritableMessage):
        uvarint(value)


def test_a_uvarint_of_six_bytes_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="longer than 5 bytes"):
        Reader(b"\x80\x80\x80\x80\x80\x01").uvarint()


@pytest.mark.parametrize("value", [0, -1, 1, -2, 63, -64, 64, 2**31 - 1, -(2**31)])
def test_varint_is_zigzag(value: int) -> None:
    writer = Writer()
    writer.varint(value)
    assert writer.getvalue() == uvarint(value * 2 if value >= 0 else -value * 2 - 1)
    assert Reader(writer.getvalue()).varint() == value


def test_integers_are_big_endian() -> None:
    writer = Writer()
    writer.int8(-2)
    writer.int16(258)
    writer.int32(-1)
    writer.int64(2**40)
    writer.number("uint16", 65535)
    writer.number("uint32", 2**32 - 1)
    writer.number("float64", 1.0)
    writer.number("bool", True)
    written = writer.getvalue()
    assert written.hex(" ") == (
        "fe 01 02 ff ff ff ff 00 00 01 00 00 00 00 00 ff ff ff ff ff ff 3f f0 00 00 00 00 00 00 01"
    )
    reader = Reader(written)
    assert (reader.int8(), reader.int16(), reader.int32(), reader.int64()) == (-2, 258, -1, 2**40)
    assert (reader.number("uint16"), reader.number("uint32")) == (65535, 2**32 - 1)
    assert (reader.number("float64"), reader.number("bool"), reader.remaining) == (1.0, True, 0)


def test_a_number_out_of_range_is_refused() -> None:
    with pytest.raises(UnwritableMessage, match="40000 is not int16"):
        Writer().int16(40000)


@pytest.mark.parametrize(
    ("value", "plain", "compact"),
    [(None, b"\xff\xff", b"\0"), ("", b"\0\0", b"\1"), ("é", b"\0\2\xc3\xa9", b"\3\xc3\xa9")],
)
def test_strings(value: str | None, plain: bytes, compact: bytes) -> None:
    for is_compact, written in ((False, plain), (True, compact)):
        writer = Writer()
        writer.string(value, compact=is_compact)
        assert writer.getvalue() == written
        assert Reader(written).string(compact=is_compact) == value


@pytest.mark.parametrize(
    ("value", "plain", "compact"),
    [(None, b"\xff\xff\xff\xff", b"\0"), (b"", b"\0\0\0\0", b"\1"), (b"\0\xff", b"\0\0\0\2\0\xff", b"\3\0\xff")],
)
def test_bytes(value: bytes | None, plain: bytes, compact: bytes) -> None:
    for is_compact, written in ((False, plain), (True, compact)):
        writer = Writer()
        writer.blob(value, compact=is_compact)
        assert writer.getvalue() == written
        assert Reader(written).blob(compact=is_compact) == value


@pytest.mark.parametrize(
    ("value", "plain", "compact"),
    [(None, "ffffffff", "00"), ([], "00000000", "01"), ([7, 8], "0000000200070008", "0300070008")],
)
def test_arrays(value: list[int] | None, plain: str, compact: str) -> None:
    for is_compact, written in ((False, plain), (True, compact)):
        writer = Writer()
        writer.array(value, writer.int16, compact=is_compact)
        assert writer.getvalue().hex() == written
        reader = Reader(bytes.fromhex(written))
        assert reader.array(reader.int16, compact=is_compact) == value


def test_bytes_that_are_not_utf8_are_replaced_as_java_does() -> None:
    assert Reader(b"\0\3a\xffb").string() == "a�b"


def test_a_string_has_at_most_32767_bytes() -> None:
    Writer().string("x" * 32767, compact=True)
    with pytest.raises(UnwritableMessage, match="32768"):
        Writer().string("x" * 32768, compact=True)
    with pytest.raises(MalformedMessage, match="32768"):
        Reader(uvarint(32769) + b"x" * 32768).string(compact=True)


def test_tagged_fields_ascend() -> None:
    written = write_tags([(1, b"b")], [(0, b"a"), (200, b"")])
    assert written == b"\3\0\1a\1\1b\xc8\1\0"
    assert Reader(written).tags() == ((0, b"a"), (1, b"b"), (200, b""))


def test_a_tagged_field_must_not_occur_twice() -> None:
    with pytest.raises(UnwritableMessage, match="tagged field 1 occurs twice"):
        write_tags([(1, b"b")], [(1, b"a")])


@pytest.mark.parametrize(
    "read",
    [
        lambda data: Reader(b"\x7f\xff\xff\xff" + data).blob(),
        lambda data: Reader(b"\xff\xff\xff\xff\x07" + data).blob(compact=True),
        lambda data: Reader(b"\x7f\xff" + data).string(),
        lambda data: Reader(b"\x7f\xff\xff\xff" + data).array(lambda: None),
        lambda data: Reader(b"\xff\xff\xff\xff\x07" + data).tags(),
        lambda data: Reader(b"\1\0\xff\xff\xff\xff\x07" + data).tags(),
        lambda data: read_numbers("int64", data, 0, 2**31 - 1),
        lambda data: read_uuids(data, 0, 2**31 - 1),
        lambda data: read_strings(b"\x7f\xff" + data, 0, 3, False),
    ],
)
def test_a_hostile_length_is_refused_before_anything_is_allocated(read: object) -> None:
    assert callable(read)
    data = b"\0" * 50
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_an_incomplete_value_is_refused_with_its_position() -> None:
    reader = Reader(b"\0\0\0\1\0\0", what="thing")
    reader.int32()
    with pytest.raises(MalformedMessage, match=r"thing: ends within 4 bytes \(at byte 4\)") as caught:
        reader.int32()
    assert (caught.value.what, caught.value.position) == ("thing", 4)
    with pytest.raises(MalformedMessage, match="ends within a varint"):
        Reader(b"\x80").uvarint()
    with pytest.raises(MalformedMessage, match="needs 16 bytes where 1 remain"):
        Reader(b"x").uuid()
