"""ReplicaFetchers: the fetchers of a broker: num.replica.fetchers for each leader that it follows.

A partition belongs to the fetcher that Kafka's hash of its name selects, so that the same partitions share a request
and a connection as in Kafka. If the number changes, the partitions are distributed again without waiting for requests
under way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.java.java_hash import java_abs, java_hash, to_int32
from tailrace.replication.fetching.fetcher_settings import FetcherSettings
from tailrace.replication.fetching.replica_fetcher import ReplicaFetcher
from tailrace.replication.follower import FollowerRole
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.waiting.outbox import Outbox, Peer

_log = logging.getLogger(__name__)


def fetcher_of(key: TopicPartition, count: int) -> int:
    """Return the number of the fetcher that has a partition, among `count` fetchers."""
    return java_abs(to_int32(31 * java_hash(key.topic) + key.partition)) % count


class ReplicaFetchers:
    def __init__(
        self,
        settings: FetcherSettings,
        outbox: Outbox,
        partitions: HostedPartitions,
        locate: Callable[[BrokerId], Peer | None],
        progressed: Callable[[TopicPartition, int], None],
        *,
        count: int = 1,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._partitions = partitions
        self._locate = locate
        self._progressed = progressed
        self._count = count  # for each leader
        self._fetchers: dict[tuple[BrokerId, int], ReplicaFetcher] = {}
        self._idle_fetchers: set[ReplicaFetcher] = set()  # those without a request under way: few

    def __len__(self) -> int:
        return len(self._fetchers)

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from the leader that its role names, if any. The other fetchers notice that by
        themselves."""
        role = partition.role
        if not isinstance(role, FollowerRole) or role.leader_id < 0:
            return
        number = fetcher_of(partition.key, self._count) if self._count > 1 else 0
        fetcher = self._fetchers.get((role.leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[role.leader_id, number] = ReplicaFetcher(
                role.leader_id,
                self._settings,
                self._outbox,
                self._partitions,
                self._locate,
                self._progressed,
                number,
                self._idle_fetchers,
            )
        fetcher.add(partition, role)

    def resize(self, count: int) -> None:
        """Set the number of fetchers for each leader."""
        if count == self._count:
            return
        _log.info("fetchers for each leader: %d, before: %d", count, self._count)
        self._count = count
        for fetcher in list(self._fetchers.values()):
            for partition in fetcher.release():
                self.follow(partition)

    @property
    def max_lag(self) -> int:
        """Return the largest lag of a followed partition behind its leader's high watermark."""
        return max((one.max_lag for one in self._fetchers.values()), default=0)

    def tick(self, now_ms: int) -> None:
        for fetcher in sorted(self._idle_fetchers, key=lambda one: (one.leader_id, one.number)):
            fetcher.step(now_ms)
            if fetcher.is_idle:
                fetcher.close()
                self._idle_fetchers.discard(fetcher)
                del self._fetchers[fetcher.leader_id, fetcher.number]

    def next_deadline_ms(self) -> int | None:
        first_ms = None
        for fetcher in self._idle_fetchers:
            due_ms = fetcher.next_deadline_ms()
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        return first_ms
