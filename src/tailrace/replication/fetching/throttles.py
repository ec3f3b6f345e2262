"""LeaderThrottle, FollowerThrottle: limits of the replication rate, for the replicas that topic configs list.

    leader.replication.throttled.rate     what the leader sends; leader.replication.throttled.replicas of a topic
    follower.replication.throttled.rate   what a follower fetches; follower.replication.throttled.replicas

A topic lists replicas as partition:broker, or all with `*`. While the rate is exceeded, the leader returns no records
of these partitions to followers that are not in sync, and a follower that is not in sync does not fetch them. Replicas
in sync are never throttled, but their traffic counts.
"""

from __future__ import annotations

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition


def _names(replicas: tuple[str, ...], index: int, broker_id: BrokerId) -> bool:
    return bool(replicas) and (replicas == ("*",) or f"{index}:{broker_id}" in replicas)


class LeaderThrottle:
    def __init__(self, partitions: HostedPartitions, broker_id: BrokerId, quota: ReplicationQuota) -> None:
        self._partitions = partitions
        self._broker_id = broker_id
        self.quota = quota

    def is_throttled(self, partition: TopicPartition, replica_id: BrokerId) -> bool:
        hosted = self._partitions.get(partition)
        if hosted is None:
            return False
        named = hosted.log.config.leader_replication_throttled_replicas
        return _names(named, partition.partition, self._broker_id)

    def is_exceeded(self, now_ms: int) -> bool:
        return self.quota.is_exceeded(now_ms)

    def record(self, size: int, now_ms: int) -> None:
        self.quota.record(size, now_ms)


class FollowerThrottle:
    def __init__(self, broker_id: BrokerId, quota: ReplicationQuota) -> None:
        self._broker_id = broker_id
        self.quota = quota

    def is_throttled(self, partition: Partition) -> bool:
        named = partition.log.config.follower_replication_throttled_replicas
        return _names(named, partition.key.partition, self._broker_id)

    def is_exceeded(self, now_ms: int) -> bool:
        return self.quota.is_exceeded(now_ms)

    def record(self, size: int, now_ms: int) -> None:
        self.quota.record(size, now_ms)
