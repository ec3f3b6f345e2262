"""The leader of a partition, for a client that asked the wrong broker: its id, epoch and endpoint."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.metadata.image.image import MetadataImage
from tailrace.model.ids import BrokerId, LeaderEpoch, TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions


class LeaderNode(NamedTuple):
    """The address of a leader for clients."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


class CurrentLeader(NamedTuple):
    leader_id: BrokerId
    leader_epoch: LeaderEpoch
    node: LeaderNode | None  # None if it has no endpoint for the client's listener


def current_leader(
    key: TopicPartition, partitions: HostedPartitions, image: MetadataImage, listener: str
) -> CurrentLeader:
    """Return the leader that the replica here knows, or else the one in the metadata."""
    leader_id, leader_epoch = -1, -1
    partition = partitions.get(key)
    if partition is not None:
        leader_id = -1 if partition.leader_id is None else partition.leader_id
        leader_epoch = partition.leader_epoch
    elif (registration := image.partition(key)) is not None:
        leader_id, leader_epoch = registration.leader, registration.leader_epoch
    broker = image.brokers.get(leader_id)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(listener)
    if broker is None or endpoint is None:
        return CurrentLeader(leader_id, leader_epoch, None)
    return CurrentLeader(leader_id, leader_epoch, LeaderNode(leader_id, endpoint.host, endpoint.port, broker.rack))
