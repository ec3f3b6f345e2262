"""Preferred read replica: a leader may redirect a consumer to a replica in its own rack (KIP-392).

Candidates are the leader and the in-sync replicas that have the fetch offset. `RackAwareReplicaSelector` chooses the
leader if the leader is in the client's rack, or if no candidate is. Otherwise it chooses the most caught-up replica of
that rack: by log end offset, then by the time since it was caught up, then by id. Only the leader decides, and only for
consumers.

A consumer that reads from a follower sees committed records when the follower learns the high watermark. With a replica
selector, a follower's fetch is therefore answered as soon as there is a new high watermark, not only with the next
records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from tailrace.metadata.image.image import MetadataImage
from tailrace.model.ids import BrokerId, Offset
from tailrace.model.topic_config import InvalidConfig
from tailrace.replication.partition import Partition


class ReplicaView(NamedTuple):
    broker_id: BrokerId
    rack: str | None
    log_end_offset: Offset
    ms_since_caught_up: int


# (client's rack, replicas including the leader, the leader) → the replica to read from
ReplicaSelector: TypeAlias = Callable[[str, Sequence[ReplicaView], ReplicaView], ReplicaView]

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def rack_aware(rack: str, replicas: Sequence[ReplicaView], leader: ReplicaView) -> ReplicaView:
    nearby = [replica for replica in replicas if rack and replica.rack == rack]
    if not nearby or leader in nearby:
        return leader
    return max(nearby, key=lambda one: (one.log_end_offset, -one.ms_since_caught_up, one.broker_id))


def selector_of(name: str | None) -> ReplicaSelector | None:
    """Return the selector of replica.selector.class, or None if all consumers read from the leader."""
    if name is None:
        return None
    if name != RACK_AWARE:
        raise InvalidConfig(f"replica.selector.class {name} is not supported: it can only be {RACK_AWARE}, or not set")
    return rack_aware


def preferred_replica(
    select: ReplicaSelector,
    partition: Partition,
    image: MetadataImage,
    rack: str,
    listener: str,
    offset: Offset,
    now_ms: int,
) -> BrokerId | None:
    """Return the replica to which a consumer is redirected, or None to read here."""
    role = partition.leader
    if role is None or not role.followers:
        return None
    views = [
        ReplicaView(
            broker_id,
            _rack(image, broker_id, listener),
            follower.log_end_offset,
            now_ms - follower.last_caught_up_ms,
        )
        for broker_id, follower in role.followers.items()
        if broker_id in role.isr.committed and follower.log_start_offset <= offset <= follower.log_end_offset
    ]
    assert partition.leader_id is not None
    leader = ReplicaView(
        partition.leader_id, _rack(image, partition.leader_id, listener), partition.log.log_end_offset, 0
    )
    chosen = select(rack, [*views, leader], leader)
    if chosen == leader or not _is_reachable(image, chosen.broker_id, listener):
        return None
    return chosen.broker_id


def _is_reachable(image: MetadataImage, broker_id: BrokerId, listener: str) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and listener in broker.endpoints


def _rack(image: MetadataImage, broker_id: BrokerId, listener: str) -> str | None:
    return image.brokers[broker_id].rack if _is_reachable(image, broker_id, listener) else None
