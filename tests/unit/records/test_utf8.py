"""Malformed UTF-8 becomes the characters that Java puts in its place."""

import pytest

from tailrace.records.utf8 import decode_utf8


def test_valid_utf8_is_decoded_unchanged():
    assert decode_utf8("naïve ☃ 𝄞".encode()) == "naïve ☃ 𝄞"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xc3", "\ufffd"),
        (b"\xe2\x98", "\ufffd"),
        (b"\xe2\x98x", "\ufffdx"),
        (b"\xf0\x9d\x84", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd"),  # a surrogate: one character for its three bytes
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0x", "\ufffdx"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xf5\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
    ],
)
def test_malformed_bytes_are_replaced(data, text):
    assert decode_utf8(data) == text
