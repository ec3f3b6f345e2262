"""Metadata of a cluster: brokers, topics, partitions and their leaders."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.client.errors import InvalidAnswer, UnknownPartition
from tailrace.client.network.address import Address
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, LeaderEpoch, TopicPartition
from tailrace.protocol.codegen.schema import ZERO_UUID
from tailrace.protocol.messages import MetadataResponse

NO_LEADER = -1


class Broker(NamedTuple):
    node_id: BrokerId
    address: Address
    rack: str | None = None
    is_fenced: bool = False


class PartitionMetadata(NamedTuple):
    partition: TopicPartition
    leader: BrokerId  # -1: no leader
    leader_epoch: LeaderEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...]
    error_code: int = ErrorCode.NONE


class TopicMetadata(NamedTuple):
    name: str
    topic_id: bytes  # zeros if the cluster is too old for topic ids
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]  # by number, without gaps

    @property
    def has_id(self) -> bool:
        return self.topic_id != ZERO_UUID

    @property
    def replication_factor(self) -> int:
        """The largest number of replicas of a partition. Partitions can differ during a reassignment."""
        return max((len(partition.replicas) for partition in self.partitions), default=0)

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        return [partition.partition for partition in self.partitions]

    def partition(self, number: int) -> PartitionMetadata:
        if not 0 <= number < len(self.partitions):
            raise UnknownPartition(self.name, number, len(self.partitions))
        return self.partitions[number]


class ClusterMetadata(NamedTuple):
    cluster_id: str | None
    controller_id: BrokerId  # -1: unknown. In a KRaft cluster a random broker, which forwards to the controller
    brokers: dict[BrokerId, Broker]


def read_brokers(answer: MetadataResponse) -> dict[BrokerId, Broker]:
    return {
        broker.node_id: Broker(broker.node_id, Address(broker.host, broker.port), broker.rack)
        for broker in answer.brokers
    }


def read_topic(answer: MetadataResponse.MetadataResponseTopic) -> TopicMetadata:
    """Return a topic. Raise InvalidAnswer if it has no name, or its partitions are not numbered from 0."""
    if answer.name is None:
        raise InvalidAnswer("the broker described a topic without a name")
    if sorted(partition.partition_index for partition in answer.partitions) != list(range(len(answer.partitions))):
        raise InvalidAnswer(f"the broker described topic {answer.name!r} with partitions that are not numbered from 0")
    partitions = [
        PartitionMetadata(
            TopicPartition(answer.name, partition.partition_index),
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
            partition.error_code,
        )
        for partition in sorted(answer.partitions, key=lambda partition: partition.partition_index)
    ]
    return TopicMetadata(answer.name, answer.topic_id, answer.is_internal, tuple(partitions))
