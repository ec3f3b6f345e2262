"""The metadata hash of a group: XXH3 over names, ids, partitions and racks of its topics.

A group notices by it that its topics have changed. The hash is stored with the group epoch, so it must equal Kafka's.
Otherwise every group would rebalance once when a directory moves between Kafka and Tailrace.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from xxhash import xxh3_64

from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.model.java.java_order import text_order


class TopicHashes:
    """Metadata hashes. The hash of each topic is cached until the topic changes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def of(self, topics: Iterable[str], image: MetadataImage) -> int:
        """Return the hash of several topics. Topics that do not exist are left out."""
        hasher = xxh3_64()
        found = False
        for name in sorted(topics, key=text_order):
            topic = image.topics.get(name)
            if topic is None:
                self._known.pop(name, None)
                continue
            found = True
            hasher.update(pack("<q", self._of(topic, image)))
        return _signed(hasher.intdigest()) if found else 0

    def _of(self, topic: TopicImage, image: MetadataImage) -> int:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        hashed = topic_hash(topic, image)
        self._known[topic.name] = (topic, hashed)
        return hashed


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    hasher = xxh3_64(b"\0")  # the version of the hash
    high, low = int.from_bytes(topic.id[:8], "big"), int.from_bytes(topic.id[8:], "big")
    hasher.update(pack("<QQ", high, low))
    hasher.update(_string(topic.name))
    hasher.update(pack("<i", len(topic.partitions)))
    for number in range(len(topic.partitions)):
        hasher.update(pack("<i", number))
        brokers = (image.brokers.get(replica) for replica in topic.partitions[number].replicas)
        racks = sorted((broker.rack for broker in brokers if broker is not None and broker.rack), key=text_order)
        for rack in racks:
            hasher.update(pack("<i", len(rack)))
            hasher.update(_string(rack))
    return _signed(hasher.intdigest())


def _string(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + pack("<i", len(encoded) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
