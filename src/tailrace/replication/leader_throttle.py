"""LeaderThrottle: `leader.replication.throttled.rate`, for the partitions that their topics name.

A topic says with `leader.replication.throttled.replicas` which of its partitions count on which leader: `*`, or a list
of partition:broker. Followers that are not in sync get nothing of them while the rate is exceeded; all that is sent of
them counts.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.hosted_partitions import HostedPartitions


class LeaderThrottle:
    def __init__(
        self, partitions: HostedPartitions, broker_id: BrokerId, quota: ReplicationQuota, now_ms: Callable[[], int]
    ) -> None:
        self._partitions = partitions
        self._broker_id = broker_id
        self._quota = quota
        self._now_ms = now_ms

    def is_throttled(self, partition: TopicPartition, replica_id: BrokerId) -> bool:
        hosted = self._partitions.get(partition)
        if hosted is None:
            return False
        named = hosted.log.config.leader_replication_throttled_replicas
        return bool(named) and (named == ("*",) or f"{partition.partition}:{self._broker_id}" in named)

    def is_exceeded(self) -> bool:
        return self._quota.is_exceeded(self._now_ms())

    def record(self, size: int, now_ms: int) -> None:
        self._quota.record(size, now_ms)
