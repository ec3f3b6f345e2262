"""The partition of a key, as Kafka's default partitioner computes it.

The partition is murmur2 of the key's bytes with seed 0x9747b28c, with the sign bit cleared, modulo the number of
partitions. Records without a key may go to any partition.
"""

from __future__ import annotations

from tailrace.model.java.murmur2 import murmur2
from tailrace.records.batch import Buffer


def partition_of_key(key: Buffer, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions
