"""Heartbeat: what a member says of itself, and whether it may: of the right instance and in a current epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.reconciliation import Owned
from tailrace.model.errors import ErrorCode, KafkaError

Sees: TypeAlias = Callable[[str], bool]  # whether a client may know of a topic


def sees_all(_: str) -> bool:
    return True


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat request, free of the memory it was received in; None is what did not change."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] | None = None
    topic_pattern: str | None = None
    server_assignor: str | None = None
    owned: Owned | None = None
    sees: Sees = sees_all

    @property
    def is_full(self) -> bool:
        """It says everything, as after a lost answer: then it is told everything as well."""
        subscribes = self.topic_names is not None or self.topic_pattern is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None


def told_of(member: ConsumerMember, beat: Heartbeat) -> ConsumerMember:
    """The member with what its heartbeat says; what it leaves out stays."""
    return replace(
        member,
        instance_id=member.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms
        ),
        server_assignor=member.server_assignor if beat.server_assignor is None else beat.server_assignor,
        topic_names=member.topic_names if beat.topic_names is None else beat.topic_names,
        topic_pattern=member.topic_pattern if beat.topic_pattern is None else beat.topic_pattern,
        client_id=beat.client_id,
        client_host=beat.client_host,
        classic=None,
    )


def check_instance(member: ConsumerMember | None, instance_id: str, member_id: str) -> ConsumerMember:
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """A member may be one epoch behind, if the answer that told it of the new one was lost."""
    if epoch == member.member_epoch:
        return
    if epoch < member.member_epoch and epoch == member.previous_epoch and _is_within(owned, member.assigned):
        return
    how = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned | None, assigned: Mapping[bytes, Mapping[int, int]]) -> bool:
    if owned is None:
        return False
    return all(partition in assigned.get(topic, ()) for topic, partitions in owned.items() for partition in partitions)
