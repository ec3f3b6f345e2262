"""The partition of a coordinator's topic that a key belongs to: Java's String.hashCode, its absolute value, modulo."""

from __future__ import annotations

from functools import lru_cache

from tailrace.model.java.java_hash import java_abs, java_hash


@lru_cache(maxsize=4096)
def partition_of(key: str, partitions: int) -> int:
    return java_abs(java_hash(key)) % partitions
