"""java_hash: what Java's String.hashCode says of a text; it decides which partition or fetcher something belongs to."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 units, in 32 bits with a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return to_int32(code)


def java_length(text: str) -> int:
    """Return Java's String.length(): the number of UTF-16 units, by which Kafka limits names and values."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_int32(number: int) -> int:
    """As an int of Java would have it."""
    low = number & 0xFFFFFFFF
    return low - 2**32 if low >= 2**31 else low


def java_abs(code: int) -> int:
    """Kafka's absolute value of an int: Java has none of its smallest, for which this is 0."""
    return 0 if code == -(2**31) else abs(code)
