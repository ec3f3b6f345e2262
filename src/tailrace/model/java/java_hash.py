"""java_hash: Java's String.hashCode. Kafka chooses partitions and replica fetchers with it."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """Return Java's String.hashCode(), which is computed over UTF-16 units as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return to_int32(code)


def java_length(text: str) -> int:
    """Return Java's String.length(): the number of UTF-16 units, by which Kafka limits names and values."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_int32(number: int) -> int:
    """Return the number wrapped to a signed 32-bit integer, as Java's int arithmetic does."""
    low = number & 0xFFFFFFFF
    return low - 2**32 if low >= 2**31 else low


def java_abs(code: int) -> int:
    """Return Kafka's absolute value of an int. It is 0 for Integer.MIN_VALUE, which has no positive counterpart."""
    return 0 if code == -(2**31) else abs(code)
