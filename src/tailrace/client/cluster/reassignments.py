"""Moves partitions to other brokers: a plan, the change, its throttle, and its cancellation.

`reassignments` in replicas.py returns those that are running.

A throttle limits the replication of moving replicas. It has two parts, as Kafka's own tool sets them: rates of the
brokers, and for each topic the lists of throttled replicas. `remove_throttle` removes both parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.metadata import TopicMetadata
from tailrace.client.configs import ConfigChange, Operation, Resource, alter_configs
from tailrace.client.errors import Refused
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.protocol.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse

Assignment = Mapping[TopicPartition, Sequence[BrokerId]]
BROKER_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


def plan_assignment(
    topics: Iterable[TopicMetadata], brokers: Sequence[BrokerId], replication_factor: int | None
) -> dict[TopicPartition, list[BrokerId]]:
    """Spread partitions over the brokers, and move as few replicas as possible.

    Replicas on these brokers stay, up to an equal share of each broker. The first replica is the preferred leader; each
    broker gets about the same number of them.
    """
    wanted = [one for topic in topics for one in topic.partitions]
    factors = {one.partition: replication_factor or len(one.replicas) for one in wanted}
    share = -(-sum(factors.values()) // len(brokers))
    load = dict.fromkeys(brokers, 0)
    plan: dict[TopicPartition, list[BrokerId]] = {}
    for one in wanted:
        kept = [node for node in one.replicas if node in load and load[node] < share][: factors[one.partition]]
        for node in kept:
            load[node] += 1
        plan[one.partition] = kept
    for partition, replicas in plan.items():
        while len(replicas) < factors[partition]:
            node = min((node for node in brokers if node not in replicas), key=lambda node: load[node])
            replicas.append(node)
            load[node] += 1
    return with_balanced_leaders(plan, brokers)


def with_balanced_leaders(
    plan: dict[TopicPartition, list[BrokerId]], brokers: Sequence[BrokerId]
) -> dict[TopicPartition, list[BrokerId]]:
    """Put the replica first whose broker is the preferred leader of the fewest partitions."""
    leads = dict.fromkeys(brokers, 0)
    for replicas in plan.values():
        leader = min(replicas, key=lambda node: (leads[node], replicas.index(node)))
        leads[leader] += 1
        replicas.insert(0, replicas.pop(replicas.index(leader)))
    return plan


def alter_assignment(cluster: ClusterClient, assignment: Mapping[TopicPartition, Sequence[BrokerId] | None]) -> None:
    """Start to move partitions to these replicas. None cancels a running move."""
    partitions: dict[str, list[AlterPartitionReassignmentsRequest.ReassignablePartition]] = defaultdict(list)
    for (topic, number), replicas in assignment.items():
        partitions[topic].append(
            AlterPartitionReassignmentsRequest.ReassignablePartition(
                partition_index=number, replicas=None if replicas is None else list(replicas)
            )
        )
    request = AlterPartitionReassignmentsRequest(
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(name=name, partitions=found)
            for name, found in partitions.items()
        ],
        timeout_ms=cluster.settings.request_timeout_ms,
    )

    def check(answer: AlterPartitionReassignmentsResponse) -> None:
        if answer.error_code:
            raise Refused("reassignment", answer.error_code, answer.error_message)
        for topic in answer.responses:
            for one in topic.partitions:
                if one.error_code:
                    partition = TopicPartition(topic.name, one.partition_index)
                    raise Refused(str(partition), one.error_code, one.error_message)

    cluster.change(request, check)


def set_throttle(cluster: ClusterClient, current: Assignment, target: Assignment, bytes_per_s: int) -> None:
    """Limit the replication of the replicas that the reassignment adds, at their leaders and at themselves."""
    leaders: dict[str, list[str]] = defaultdict(list)
    followers: dict[str, list[str]] = defaultdict(list)
    for partition, replicas in target.items():
        added = [node for node in replicas if node not in current[partition]]
        if added:
            leaders[partition.topic] += [f"{partition.partition}:{node}" for node in current[partition]]
            followers[partition.topic] += [f"{partition.partition}:{node}" for node in added]
    for topic, listed in leaders.items():
        changes = [
            ConfigChange(LEADER_REPLICAS, Operation.SET, ",".join(listed)),
            ConfigChange(FOLLOWER_REPLICAS, Operation.SET, ",".join(followers[topic])),
        ]
        alter_configs(cluster, Resource.topic(topic), changes)
    rates = [ConfigChange(name, Operation.SET, str(bytes_per_s)) for name in BROKER_RATES]
    for node_id in sorted(cluster.metadata.brokers):
        alter_configs(cluster, Resource.broker(node_id), rates)


def remove_throttle(cluster: ClusterClient, topics: Iterable[str]) -> None:
    """Remove the rates of all brokers, and the lists of throttled replicas of these topics."""
    lists = [ConfigChange(name, Operation.DELETE) for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    for topic in dict.fromkeys(topics):
        alter_configs(cluster, Resource.topic(topic), lists)
    rates = [ConfigChange(name, Operation.DELETE) for name in BROKER_RATES]
    for node_id in sorted(cluster.metadata.brokers):
        alter_configs(cluster, Resource.broker(node_id), rates)
