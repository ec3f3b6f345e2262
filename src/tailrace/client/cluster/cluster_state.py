"""ClusterState: a whole cluster at a glance: brokers, controllers, partitions, how far followers lag, what is wrong.

    with ClusterClient("localhost:9092") as cluster:
        state = read_cluster_state(cluster)
        state.problems(), state.partitions[0].lags

The lag of a follower is the end of its leader's log less the end of its own. Followers are asked first and leaders
after them, so that the lag told is never less than it was; under load it is more by what was written in between.

Everything but the configs of topics that look ill is asked for once, in requests to each broker for all of its
partitions: ten thousand of them take about as many requests as ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from tailrace.client.admin import describe_cluster
from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.cluster.metadata import NO_LEADER, Broker, PartitionMetadata, TopicMetadata
from tailrace.client.cluster.quorum import Quorum, QuorumReplica, describe_quorum
from tailrace.client.cluster.replicas import Reassignment, ask_brokers, end_offsets, reassignments
from tailrace.client.configs import topics_setting
from tailrace.client.errors import ClientError, UnsupportedByBroker, code_text
from tailrace.client.network.address import Address
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset, TopicPartition
from tailrace.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

# A controller hears of its log's end twice a second: one that has not for so long is not there.
VOTER_IS_LOST_MS: Final = 10_000
_NOT_MOVING: Final = Reassignment((), (), ())


@dataclass(frozen=True, slots=True)
class PartitionState:
    partition: TopicPartition
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    min_isr: int | None  # None where it does not matter: all replicas are in sync
    moving: Reassignment | None
    ends: Mapping[BrokerId, Offset]  # of the replicas that could be asked

    @property
    def is_offline(self) -> bool:
        return self.leader is None

    @property
    def out_of_sync(self) -> tuple[BrokerId, ...]:
        """Replicas that should be in sync and are not; those that a reassignment adds may take their time."""
        adding = (self.moving or _NOT_MOVING).adding
        return tuple(one for one in self.replicas if one not in self.isr and one not in adding)

    @property
    def is_under_replicated(self) -> bool:
        return bool(self.out_of_sync)

    @property
    def is_under_min_isr(self) -> bool:
        return self.min_isr is not None and len(self.isr) < min(self.min_isr, len(self.replicas))

    @property
    def is_led_by_another(self) -> bool:
        """Led, and not by the replica that should."""
        return self.leader is not None and bool(self.replicas) and self.leader != self.replicas[0]

    @property
    def lags(self) -> dict[BrokerId, int | None]:
        """Of each follower; None where it, or the leader, could not be asked."""
        end = None if self.leader is None else self.ends.get(self.leader)
        return {one: _less(end, self.ends.get(one)) for one in self.replicas if one != self.leader}

    @property
    def max_lag(self) -> int:
        return max((lag for lag in self.lags.values() if lag is not None), default=0)


class LogDirectoryState(NamedTuple):
    path: str
    error_code: int
    size: int  # of the replicas in it
    total_bytes: int  # of the volume; -1 where the broker does not say
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
    error: str | None  # why it could not be asked

    @property
    def size(self) -> int | None:
        """Of its replicas; None where it does not say, to us or at all."""
        return sum(one.size for one in self.directories) if self.directories else None


@dataclass(frozen=True)
class ClusterState:
    cluster_id: str | None
    quorum: Quorum | None  # None where the cluster has none
    brokers: tuple[BrokerState, ...]
    partitions: tuple[PartitionState, ...]

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
        """Controllers that have not followed their leader for a while."""
        if self.quorum is None:
            return []
        behind = ((one, self.quorum.behind_ms(one)) for one in self.quorum.voters)
        return [one for one, behind_ms in behind if behind_ms is None or behind_ms > VOTER_IS_LOST_MS]

    def problems(self, brokers_at_least: int = 0) -> list[str]:
        """What is wrong, a sentence each; nothing where the cluster is well."""
        counts = (
            (len(self.offline), "without a leader"),
            (len(self.under_replicated), "under-replicated"),
            (len(self.under_min_isr), "under min.insync.replicas"),
        )
        found = [f"{count:,} partition{'s' * (count > 1)} {what}" for count, what in counts if count]
        for broker in self.brokers:
            if broker.error:
                found.append(f"broker {broker.node_id} cannot be asked: {broker.error}")
            for one in broker.directories:
                if one.error_code:
                    found.append(
                        f"broker {broker.node_id}: {one.path or 'a log directory'}: {code_text(one.error_code)}"
                    )
        found += [f"controller {one.node_id} does not follow the quorum's leader" for one in self.lost_voters]
        active = sum(not broker.is_fenced for broker in self.brokers)
        if active < brokers_at_least:
            found.append(f"{active} brokers, and {brokers_at_least} are expected")
        return found


def read_cluster_state(cluster: ClusterClient) -> ClusterState:
    topics = cluster.topics()
    moving = reassignments(cluster)
    min_isr = _min_isr(cluster, topics)
    ends = _ends(cluster, topics)
    partitions = tuple(
        _partition(one, min_isr.get(topic.name), moving.get(one.partition), ends.get(one.partition, {}))
        for topic in topics
        for one in topic.partitions
    )
    try:
        quorum = describe_quorum(cluster)
    except UnsupportedByBroker:
        quorum = None
    return ClusterState(cluster.metadata.cluster_id, quorum, _brokers(cluster, partitions), partitions)


def _partition(
    told: PartitionMetadata, min_isr: int | None, moving: Reassignment | None, ends: Mapping[BrokerId, Offset]
) -> PartitionState:
    leader = None if told.leader == NO_LEADER else told.leader
    return PartitionState(
        told.partition, leader, told.leader_epoch, told.replicas, told.isr, min_isr, moving, ends
    )  # fmt: skip


def _min_isr(cluster: ClusterClient, topics: Sequence[TopicMetadata]) -> dict[str, int]:
    """Of the topics where it matters: those with replicas that are not in sync."""
    ill = [topic.name for topic in topics if any(len(one.isr) < len(one.replicas) for one in topic.partitions)]
    return {name: int(value) for name, value in topics_setting(cluster, ill, "min.insync.replicas").items()}


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
    answers = ask_brokers(cluster, {one: DescribeLogDirsRequest(topics=None) for one in alive}, at_least=1)
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


def _less(end: Offset | None, other: Offset | None) -> int | None:
    return None if end is None or other is None else max(0, end - other)
