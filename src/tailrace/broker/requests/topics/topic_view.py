"""Partitions as clients of a listener see them: reachable leaders, replicas, offline replicas and errors."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId

NO_LEADER = -1
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class PartitionView(NamedTuple):
    error_code: ErrorCode
    leader_id: BrokerId
    leader_epoch: int
    replicas: list[BrokerId]
    isr: list[BrokerId]
    offline_replicas: list[BrokerId]


def endpoint_of(image: MetadataImage, broker_id: BrokerId, listener: str) -> Endpoint | None:
    """Return the address of a live broker's listener, or None."""
    broker = image.brokers.get(broker_id)
    return None if broker is None or broker.fenced else broker.endpoints.get(listener)


def _is_usable(broker: BrokerRegistration | None, listener: str, directory: bytes) -> bool:
    """Return True if clients of a listener can reach the replica's broker and its log directory is online."""
    return broker is not None and not broker.fenced and listener in broker.endpoints and broker.is_online(directory)


def view_partition(
    image: MetadataImage, partition: PartitionRegistration, listener: str, *, hide_unreachable: bool = False
) -> PartitionView:
    """Return a partition as clients of a listener see it. `hide_unreachable` leaves out unreachable replicas."""
    brokers = image.brokers
    replicas = list(partition.replicas)
    isr = list(partition.isr)
    offline = [
        replica
        for replica, directory in zip(replicas, partition.directories, strict=True)
        if not _is_usable(brokers.get(replica), listener, directory)
    ]
    if hide_unreachable:
        replicas = [replica for replica in replicas if endpoint_of(image, replica, listener) is not None]
        isr = [replica for replica in isr if replica in replicas]
    leader = brokers.get(partition.leader)  # no broker has the id NO_LEADER
    if leader is None or not leader.is_active:
        return PartitionView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, partition.leader_epoch, replicas, isr, offline)
    if listener not in leader.endpoints:
        return PartitionView(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER, partition.leader_epoch, replicas, isr, offline)
    return PartitionView(ErrorCode.NONE, partition.leader, partition.leader_epoch, replicas, isr, offline)
