"""HostedPartitions: topic partition → Partition, online, or offline because its directory failed.

If a partition is not available, the error has the reason: it is offline (KAFKA_STORAGE_ERROR), it exists elsewhere in
the cluster (NOT_LEADER_OR_FOLLOWER, so that clients look up the leader), or it does not exist
(UNKNOWN_TOPIC_OR_PARTITION).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.shortage import is_shortage
from tailrace.replication.partition import Partition
from tailrace.replication.topic_traffic import TopicTraffic

_log = logging.getLogger(__name__)


class HostedPartitions:
    def __init__(
        self,
        image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE,
        on_failure: Callable[[Partition, OSError], None] | None = None,
    ) -> None:
        """`image` returns the current metadata. `on_failure` is called when a partition's disk fails. Usually it takes
        the whole directory offline; the partition itself goes offline in any case."""
        self._image = image
        self.on_failure = on_failure
        self._online: dict[TopicPartition, Partition] = {}
        # Returns the partition if it is online. Every request calls it, so it is the method of the dictionary itself.
        self.get: Callable[[TopicPartition], Partition | None] = self._online.get
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._offline: set[TopicPartition] = set()
        self.traffic: dict[str, TopicTraffic] = {}  # of topics with partitions here
        self.past_traffic = TopicTraffic()  # of topics that had partitions here
        self.generation = 0  # incremented with every change, so that callers can cache lookups

    def __len__(self) -> int:
        return len(self._online)

    def __iter__(self) -> Iterator[Partition]:
        return iter(tuple(self._online.values()))

    def of_topic(self, topic_id: bytes, partition: int) -> Partition | None:
        """Return the partition of a topic id, if it is online."""
        return self._by_id.get((topic_id, partition))

    def find(self, key: TopicPartition) -> Partition:
        """Return the partition, or raise a KafkaError with the reason why it is not available."""
        found = self._online.get(key)
        if found is None:
            raise KafkaError(self.error_of(key), f"{key} is not available on this broker")
        return found

    def error_of(self, key: TopicPartition) -> ErrorCode:
        """Return the reason why a partition is not online here."""
        if key in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        is_elsewhere = self._image().partition(key) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def leaders(self) -> list[Partition]:
        return [partition for partition in self._online.values() if partition.leader is not None]

    @property
    def offline(self) -> frozenset[TopicPartition]:
        return frozenset(self._offline)

    def add(self, partition: Partition) -> None:
        assert partition.key not in self._online, f"{partition.key} is hosted already"
        if partition.key not in self._offline:
            self._count(partition.key)
        partition.traffic = self.traffic[partition.key.topic]
        self._online[partition.key] = partition
        self._by_id[partition.topic_id, partition.key.partition] = partition
        self._offline.discard(partition.key)
        self.generation += 1

    def remove(self, key: TopicPartition) -> Partition | None:
        """Stop hosting a partition; return it if it was online."""
        was_hosted = key in self._online or key in self._offline
        self._offline.discard(key)
        taken = self._remove_online(key)
        if was_hosted:
            self._discount(key)
        return taken

    def mark_offline(self, key: TopicPartition) -> Partition | None:
        """Take a partition offline; it stays a replica of this broker. Return it if it was online."""
        if key not in self._online and key not in self._offline:
            self._count(key)
        self._offline.add(key)
        return self._remove_online(key)

    def _remove_online(self, key: TopicPartition) -> Partition | None:
        self.generation += 1
        partition = self._online.pop(key, None)
        if partition is not None:
            del self._by_id[partition.topic_id, key.partition]
        return partition

    def note_change(self) -> None:
        """Note that a partition has another log: requests that wait look it up again."""
        self.generation += 1

    def _count(self, key: TopicPartition) -> None:
        self.traffic.setdefault(key.topic, TopicTraffic()).add_partition()

    def _discount(self, key: TopicPartition) -> None:
        traffic = self.traffic[key.topic]
        if traffic.remove_partition():
            self.past_traffic.add(self.traffic.pop(key.topic))

    def failed(self, partition: Partition, error: OSError) -> None:
        """Take a partition offline because its disk failed. A lack of descriptors or memory fails only one
        operation."""
        if not is_shortage(error):
            _log.error("%s is now offline: %s", partition.key, error)
            self.mark_offline(partition.key)
        if self.on_failure is not None:
            self.on_failure(partition, error)
