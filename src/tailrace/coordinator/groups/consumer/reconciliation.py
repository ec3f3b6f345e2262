"""Reconciliation: the next step of a member from what it has towards what it shall have.

A partition is never given to a member before the one who has it said that it let go. So a member first loses what it
shall not have any more (and confirms that in a heartbeat that lists what it owns), only then moves to the epoch of the
target, and gets the rest piece by piece as others release it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember, MemberState, PartitionEpochs
from tailrace.model.errors import ErrorCode, KafkaError

Owned: TypeAlias = Mapping[bytes, Collection[int]]  # what a member says that it has


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Mapping[bytes, Collection[int]],
    subscribed: Collection[bytes],
    owned: Owned | None,
    is_held: Callable[[bytes, int], bool],
    *,
    subscription_changed: bool = False,
) -> ConsumerMember:
    """`is_held(topic_id, partition)` says whether anybody has it; `owned` is None if the member did not say."""
    if member.state is MemberState.STABLE:
        if member.member_epoch == target_epoch:
            return _without_unsubscribed(member, subscribed, owned) if subscription_changed else member
    elif member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, member.to_revoke):
            return _without_unsubscribed(member, subscribed, owned) if subscription_changed else member
    elif member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _step(member, target_epoch, target, subscribed, owned, is_held)


def _step(
    member: ConsumerMember,
    target_epoch: int,
    target: Mapping[bytes, Collection[int]],
    subscribed: Collection[bytes],
    owned: Owned | None,
    is_held: Callable[[bytes, int], bool],
) -> ConsumerMember:
    keeps: dict[bytes, dict[int, int]] = {}
    loses: dict[bytes, dict[int, int]] = {}
    for topic, epochs in member.assigned.items():
        wanted = target.get(topic, ()) if topic in subscribed else ()
        for partition, epoch in epochs.items():
            (keeps if partition in wanted else loses).setdefault(topic, {})[partition] = epoch
    if _still_owns(owned, loses):
        return _moved(
            member, member.member_epoch, state=MemberState.UNREVOKED_PARTITIONS, assigned=keeps, to_revoke=loses
        )
    waits = False
    for topic, wanted in target.items():
        if topic not in subscribed:
            continue
        for partition in wanted:
            if partition in keeps.get(topic, ()):
                continue
            if is_held(topic, partition) and partition not in member.to_revoke.get(topic, ()):
                waits = True
            else:
                keeps.setdefault(topic, {})[partition] = target_epoch
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _moved(member, target_epoch, state=state, assigned=keeps, to_revoke={})


def _without_unsubscribed(member: ConsumerMember, subscribed: Collection[bytes], owned: Owned | None) -> ConsumerMember:
    """Topics that a member unsubscribed from go at once, before there is a new target."""
    gone = [topic for topic in member.assigned if topic not in subscribed]
    if not gone:
        return member
    keeps = {topic: epochs for topic, epochs in member.assigned.items() if topic in subscribed}
    loses = dict(member.to_revoke)
    for topic in gone:
        loses[topic] = {**loses.get(topic, {}), **member.assigned[topic]}
    if not _still_owns(owned, loses):
        return _moved(member, member.member_epoch, assigned=keeps)
    return _moved(member, member.member_epoch, state=MemberState.UNREVOKED_PARTITIONS, assigned=keeps, to_revoke=loses)


def _moved(
    member: ConsumerMember,
    epoch: int,
    *,
    assigned: PartitionEpochs,
    state: MemberState | None = None,
    to_revoke: PartitionEpochs | None = None,
) -> ConsumerMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_epoch=member.member_epoch,
        state=member.state if state is None else state,
        assigned=assigned,
        to_revoke=member.to_revoke if to_revoke is None else to_revoke,
    )


def _still_owns(owned: Owned | None, partitions: PartitionEpochs) -> bool:
    """Whether any of these is still the member's, as far as it has said; as long as it says nothing it has them."""
    if not partitions:
        return False
    if owned is None:
        return True
    return any(
        partition in partitions.get(topic, ())
        for topic, partitions_owned in owned.items()
        for partition in partitions_owned
    )
