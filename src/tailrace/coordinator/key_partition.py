"""Which partition of a coordinator's topic a key belongs to: the absolute value of Java's String.hashCode, modulo."""

from __future__ import annotations

from functools import lru_cache


def java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 units, in 32 bits with a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


@lru_cache(maxsize=4096)
def partition_of(key: str, partitions: int) -> int:
    code = java_hash(key)
    return 0 if code == -(2**31) else abs(code) % partitions  # Java has no absolute value of its smallest number
