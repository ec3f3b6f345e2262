"""Which partition of a coordinator's topic a key belongs to: the absolute value of Java's String.hashCode, modulo."""

from __future__ import annotations

from functools import lru_cache

from tailrace.model.java.java_hash import java_abs, java_hash


@lru_cache(maxsize=4096)
def partition_of(key: str, partitions: int) -> int:
    return java_abs(java_hash(key)) % partitions
