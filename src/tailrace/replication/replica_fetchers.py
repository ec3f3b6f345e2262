"""ReplicaFetchers: the fetchers of a broker, one for each leader that it follows (num.replica.fetchers is one)."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.outgoing import Outbox, Peer
from tailrace.replication.follower import FollowerRole
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.replication.replica_fetcher import FetcherSettings, ReplicaFetcher


class ReplicaFetchers:
    def __init__(
        self,
        settings: FetcherSettings,
        outbox: Outbox,
        partitions: HostedPartitions,
        locate: Callable[[BrokerId], Peer | None],
        moved: Callable[[TopicPartition, int], None],
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._partitions = partitions
        self._locate = locate
        self._moved = moved
        self._by_leader: dict[BrokerId, ReplicaFetcher] = {}

    def follow(self, partition: Partition) -> None:
        """A partition has its role; if it follows somebody, it is fetched from there. Other fetchers see it go."""
        role = partition.role
        if not isinstance(role, FollowerRole) or role.leader_id < 0:
            return
        fetcher = self._by_leader.get(role.leader_id)
        if fetcher is None:
            fetcher = self._by_leader[role.leader_id] = ReplicaFetcher(
                role.leader_id, self._settings, self._outbox, self._partitions, self._locate, self._moved
            )
        fetcher.add(partition, role)

    @property
    def max_lag(self) -> int:
        """How far the follower that lags most is behind its leader's high watermark."""
        return max((one.max_lag for one in self._by_leader.values()), default=0)

    def tick(self, now_ms: int) -> None:
        for fetcher in list(self._by_leader.values()):
            fetcher.step(now_ms)
            if fetcher.is_idle:
                fetcher.close()
                del self._by_leader[fetcher.leader_id]

    def next_deadline_ms(self) -> int | None:
        first_ms = None
        for fetcher in self._by_leader.values():
            due_ms = fetcher.next_deadline_ms()
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        return first_ms
