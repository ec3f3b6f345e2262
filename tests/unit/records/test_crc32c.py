"""CRC-32C, not zlib's CRC-32."""

from tailrace.records.codecs.crc32c import crc32c


def test_the_check_value_of_the_polynomial():
    assert crc32c(b"123456789") == 0xE3069283


def test_views_and_writable_buffers_are_taken():
    assert crc32c(memoryview(bytearray(b"x123456789"))[1:]) == 0xE3069283
