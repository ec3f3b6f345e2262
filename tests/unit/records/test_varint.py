"""Zigzag varints: the encoding's own examples, its limits, and what is refused."""

import pytest

from tailrace.records.batch import CorruptBatch
from tailrace.records.varint import read_varint, read_varlong, varint_size, write_varint

ENCODED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), ENCODED)
def test_values_round_trip_at_the_edges_of_each_length(value, encoded):
    out = bytearray()
    write_varint(out, value)
    assert out.hex() == encoded
    assert varint_size(value) == len(out)
    assert read_varint(out, 0) == (value, len(out))
    assert read_varlong(out, 0) == (value, len(out))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**62, -(2**35)])
def test_longs_take_up_to_ten_bytes(value):
    out = bytearray(b"..")
    write_varint(out, value)
    assert read_varlong(out, 2) == (value, len(out))
    assert varint_size(value) == len(out) - 2 <= 10


def test_bits_past_the_width_are_dropped_as_java_drops_them():
    assert read_varint(bytes.fromhex("ffffffff7f"), 0) == (-(2**31), 5)
    assert read_varlong(bytes.fromhex("ffffffffffffffffff7f"), 0) == (-(2**63), 10)


@pytest.mark.parametrize(("read", "longest"), [(read_varint, 5), (read_varlong, 10)])
def test_a_varint_that_never_ends_or_is_cut_is_refused(read, longest):
    with pytest.raises(CorruptBatch, match="longer than"):
        read(b"\x80" * (longest + 1), 0)
    with pytest.raises(CorruptBatch, match="past the end"):
        read(b"\x80" * (longest - 1), 0)
    with pytest.raises(CorruptBatch, match="past the end"):
        read(b"", 0)
