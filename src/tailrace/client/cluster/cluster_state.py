"""ClusterState: brokers, controllers, partitions, the lag of followers, and problems of a cluster in one value.

    with ClusterClient("localhost:9092") as cluster:
        state = read_cluster_state(cluster)
        state.problems(), state.partitions[0].lags

The lag of a follower is the log end offset of its leader minus its own. Followers are queried before leaders. So the
reported lag is never too small; under load it also counts the records written between the two queries.

Each broker gets one request for all of its partitions, so the number of requests does not depend on the number of
partitions. Configs are queried only for topics with replicas out of sync.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from tailrace.client.admin import describe_cluster
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.metadata import NO_LEADER, Broker, PartitionMetadata, TopicMetadata
from tailrace.client.cluster.quorum import Quorum, QuorumReplica, describe_quorum
from tailrace.client.cluster.replicas import Reassignment, ask_brokers, end_offsets, reassignments
from tailrace.client.configs import Resource, describe_configs, topic_config_values
from tailrace.client.errors import ClientError, UnsupportedByBroker, code_text
from tailrace.client.network.address import Address
from tailrace.client.offsets import latest_offsets
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset, TopicPartition
from tailrace.model.listener_settings import SHARDS_LISTENER
from tailrace.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

# A controller fetches from the leader at least twice a second. After this time without a fetch it counts as lost.
VOTER_IS_LOST_MS: Final = 10_000
_BETWEEN_BROKERS: Final = "inter.broker.listener.name"
_NOT_MOVING: Final = Reassignment((), (), ())


@dataclass(frozen=True, slots=True)
class PartitionState:
    partition: TopicPartition
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    min_isr: int | None  # None (not queried) if all replicas are in sync
    moving: Reassignment | None
    ends: Mapping[BrokerId, Offset]  # log end offsets of the replicas that responded
    high_watermark: Offset | None = None  # read only for chosen topics

    @property
    def is_offline(self) -> bool:
        return self.leader is None

    @property
    def out_of_sync(self) -> tuple[BrokerId, ...]:
        """Replicas outside the ISR, without those that a reassignment is adding."""
        adding = (self.moving or _NOT_MOVING).adding
        return tuple(one for one in self.replicas if one not in self.isr and one not in adding)

    @property
    def is_under_replicated(self) -> bool:
        return bool(self.out_of_sync)

    @property
    def is_under_min_isr(self) -> bool:
        return self.min_isr is not None and len(self.isr) < min(self.min_isr, len(self.replicas))

    @property
    def is_not_led_by_preferred_replica(self) -> bool:
        """Return True if the leader is not the preferred replica."""
        return self.leader is not None and bool(self.replicas) and self.leader != self.replicas[0]

    @property
    def lags(self) -> dict[BrokerId, int | None]:
        """The lag of each follower, or None if the follower or the leader did not respond."""
        end = None if self.leader is None else self.ends.get(self.leader)
        return {one: _lag(end, self.ends.get(one)) for one in self.replicas if one != self.leader}

    @property
    def max_lag(self) -> int:
        return max((lag for lag in self.lags.values() if lag is not None), default=0)


class LogDirectoryState(NamedTuple):
    path: str
    error_code: int
    size: int  # total size of the replicas in it
    total_bytes: int  # size of the volume; -1 if the broker does not report it
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class BrokerState:
    node_id: BrokerId
    address: Address
    rack: str | None
    is_fenced: bool
    leads: int
    replicas: int
    out_of_sync: int
    max_lag: int
    directories: tuple[LogDirectoryState, ...]
    error: str | None  # the reason why it did not respond

    @property
    def size(self) -> int | None:
        """Total size of the broker's replicas; None if unknown."""
        return sum(one.size for one in self.directories) if self.directories else None


@dataclass(frozen=True)
class ClusterState:
    cluster_id: str | None
    quorum: Quorum | None  # None if the cluster is too old for DescribeQuorum
    brokers: tuple[BrokerState, ...]
    partitions: tuple[PartitionState, ...]
    has_shards: bool = False  # the brokers are the shards of one node

    @cached_property
    def offline(self) -> list[PartitionState]:
        return [one for one in self.partitions if one.is_offline]

    @cached_property
    def under_replicated(self) -> list[PartitionState]:
        return [one for one in self.partitions if one.is_under_replicated]

    @cached_property
    def under_min_isr(self) -> list[PartitionState]:
        return [one for one in self.partitions if one.is_under_min_isr]

    @cached_property
    def moving(self) -> list[PartitionState]:
        return [one for one in self.partitions if one.moving is not None]

    @cached_property
    def lost_voters(self) -> list[QuorumReplica]:
        """Controllers that have not caught up with the leader for VOTER_IS_LOST_MS."""
        if self.quorum is None:
            return []
        behind = ((one, self.quorum.behind_ms(one)) for one in self.quorum.voters)
        return [one for one, behind_ms in behind if behind_ms is None or behind_ms > VOTER_IS_LOST_MS]

    def problems(self, min_brokers: int = 0) -> list[str]:
        """Return a sentence for each problem. The list is empty if the cluster is healthy."""
        counts = (
            (len(self.offline), "without a leader"),
            (len(self.under_replicated), "under-replicated"),
            (len(self.under_min_isr), "under min.insync.replicas"),
        )
        found = [f"{count:,} partition{'s' * (count > 1)} {what}" for count, what in counts if count]
        for broker in self.brokers:
            if broker.error:
                found.append(f"broker {broker.node_id} does not respond: {broker.error}")
            for one in broker.directories:
                if one.error_code:
                    found.append(
                        f"broker {broker.node_id}: {one.path or 'a log directory'}: {code_text(one.error_code)}"
                    )
        found += [f"controller {one.node_id} does not follow the leader of the quorum" for one in self.lost_voters]
        active = sum(not broker.is_fenced for broker in self.brokers)
        if active < min_brokers:
            found.append(f"active brokers: {active}, expected: {min_brokers}")
        return found


def read_cluster_state(cluster: ClusterClient, names: Sequence[str] = ()) -> ClusterState:
    """Read the state of the cluster with all partitions, or with those of the named topics and their high watermarks.

    Raise UnknownTopic if a named topic does not exist.
    """
    topics = [cluster.topic(name) for name in names] if names else cluster.topics()
    moving = reassignments(cluster)
    min_isr = _min_isr(cluster, topics)
    led = [one.partition for topic in topics for one in topic.partitions if one.leader != NO_LEADER]
    marks = latest_offsets(cluster, led) if names else {}
    ends = _ends(cluster, topics)
    partitions = tuple(
        replace(
            _partition(one, min_isr.get(topic.name), moving.get(one.partition), ends.get(one.partition, {})),
            high_watermark=marks.get(one.partition),
        )
        for topic in topics
        for one in topic.partitions
    )
    try:
        quorum = describe_quorum(cluster)
    except UnsupportedByBroker:
        quorum = None
    brokers = _brokers(cluster, partitions)
    return ClusterState(cluster.metadata.cluster_id, quorum, brokers, partitions, has_shards(cluster))


def has_shards(cluster: ClusterClient) -> bool:
    """Return True if the brokers are the shards of one node: these connect to each other through their own listener."""
    node_id = min(cluster.metadata.brokers, default=None)
    if node_id is None:
        return False
    try:
        found = describe_configs(cluster, Resource.broker(node_id), [_BETWEEN_BROKERS])
    except ClientError:
        return False  # the broker is too old, or the client may not read its configs
    return any(one.name == _BETWEEN_BROKERS and one.value == SHARDS_LISTENER for one in found)


def _partition(
    metadata: PartitionMetadata, min_isr: int | None, moving: Reassignment | None, ends: Mapping[BrokerId, Offset]
) -> PartitionState:
    leader = None if metadata.leader == NO_LEADER else metadata.leader
    return PartitionState(
        metadata.partition, leader, metadata.leader_epoch, metadata.replicas, metadata.isr, min_isr, moving, ends
    )  # fmt: skip


def _min_isr(cluster: ClusterClient, topics: Sequence[TopicMetadata]) -> dict[str, int]:
    """Return min.insync.replicas of the topics with replicas out of sync."""
    out_of_sync = [topic.name for topic in topics if any(len(one.isr) < len(one.replicas) for one in topic.partitions)]
    return {
        name: int(value) for name, value in topic_config_values(cluster, out_of_sync, "min.insync.replicas").items()
    }


def _ends(cluster: ClusterClient, topics: Sequence[TopicMetadata]) -> dict[TopicPartition, dict[BrokerId, Offset]]:
    alive = cluster.metadata.brokers
    followed: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
    led: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for topic in topics:
        for one in topic.partitions:
            followers = [replica for replica in one.replicas if replica != one.leader and replica in alive]
            for replica in followers:
                followed[replica].append(one.partition)
            if followers and one.leader in alive:
                led[one.leader].append(one.partition)
    found: dict[TopicPartition, dict[BrokerId, Offset]] = defaultdict(dict)
    for wanted in (followed, led):
        for (node_id, partition), offset in end_offsets(cluster, wanted).items():
            found[partition][node_id] = offset
    return found


def _brokers(cluster: ClusterClient, partitions: Sequence[PartitionState]) -> tuple[BrokerState, ...]:
    alive = cluster.metadata.brokers
    try:
        known: dict[BrokerId, Broker] = describe_cluster(cluster, include_fenced=True).brokers
    except UnsupportedByBroker:
        known = alive
    answers = ask_brokers(cluster, {one: DescribeLogDirsRequest(topics=None) for one in alive}, version_min=1)
    leads, replicas, out_of_sync, max_lag = (defaultdict[BrokerId, int](int) for _ in range(4))
    for partition in partitions:
        if partition.leader is not None:
            leads[partition.leader] += 1
        for replica in partition.replicas:
            replicas[replica] += 1
        for replica in partition.out_of_sync:
            out_of_sync[replica] += 1
        for replica, lag in partition.lags.items():
            max_lag[replica] = max(max_lag[replica], lag or 0)
    return tuple(
        BrokerState(
            node_id,
            broker.address,
            broker.rack,
            broker.is_fenced,
            leads[node_id],
            replicas[node_id],
            out_of_sync[node_id],
            max_lag[node_id],
            _directories(answers.get(node_id)),
            str(answers[node_id]) if isinstance(answers.get(node_id), ClientError) else None,
        )
        for node_id, broker in sorted((known | {one: alive[one] for one in alive if one not in known}).items())
    )


def _directories(answer: object) -> tuple[LogDirectoryState, ...]:
    if not isinstance(answer, DescribeLogDirsResponse):
        return ()
    return tuple(
        LogDirectoryState(
            one.log_dir,
            one.error_code,
            sum(replica.partition_size for topic in one.topics for replica in topic.partitions),
            one.total_bytes,
            one.usable_bytes,
        )
        for one in answer.results
    )


def _lag(end: Offset | None, other: Offset | None) -> int | None:
    return None if end is None or other is None else max(0, end - other)
