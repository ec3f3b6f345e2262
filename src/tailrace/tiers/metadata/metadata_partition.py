"""The partition of `__remote_log_metadata` that has the records about a user's partition.

Kafka hashes the topic id and the partition as Java's `Objects.hash` does, and that number's four bytes as murmur2.
"""

from __future__ import annotations

from tailrace.model.ids import TopicId
from tailrace.model.java.java_hash import to_int32
from tailrace.model.java.murmur2 import murmur2


def metadata_partition(topic_id: TopicId, partition: int, partitions: int) -> int:
    """Return the partition of the metadata topic, which has `partitions` of them."""
    number = int.from_bytes(topic_id.value.bytes, "big")
    code = 1
    for part in (_long_hash(number & 0xFFFFFFFFFFFFFFFF), _long_hash(number >> 64), partition):
        code = to_int32(31 * code + part)
    return (murmur2((code & 0xFFFFFFFF).to_bytes(4, "big")) & 0x7FFFFFFF) % partitions


def _long_hash(number: int) -> int:
    """Return Java's Long.hashCode."""
    return (number ^ number >> 32) & 0xFFFFFFFF
