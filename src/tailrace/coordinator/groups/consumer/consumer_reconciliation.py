"""Reconciliation of a consumer group: the next step of a member from its present partitions to its target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember, PartitionEpochs
from tailrace.coordinator.groups.epoch.epoch_member import MemberState
from tailrace.coordinator.groups.epoch.reconciliation import can_step, difference, overlaps

Owned: TypeAlias = Mapping[bytes, Collection[int]]  # the partitions that a member reports, by topic id

_FENCE = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."


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
    """Return the member after its next step.

    `is_held(topic_id, partition)` is True if any member has the partition or must still revoke it. `owned` is None if
    the heartbeat does not report it.
    """
    has_revoked = not _still_owns(owned, member.to_revoke)
    owns_nothing = owned is not None and not owned
    if not can_step(member, target_epoch, has_revoked=has_revoked, owns_nothing=owns_nothing, fence=_FENCE):
        return _without_unsubscribed(member, subscribed, owned) if subscription_changed else member

    def is_unreleased(topic: bytes, partition: int) -> bool:
        return is_held(topic, partition) and partition not in member.to_revoke.get(topic, ())

    wanted = {topic: partitions for topic, partitions in target.items() if topic in subscribed}
    change = difference(member.assigned, wanted, target_epoch, is_unreleased)
    if _still_owns(owned, change.revoked):
        return member.moved_to(
            member.member_epoch, MemberState.UNREVOKED, assigned=change.kept, to_revoke=change.revoked
        )
    state = MemberState.UNRELEASED if change.waits else MemberState.STABLE
    return member.moved_to(target_epoch, state, assigned=change.assigned, to_revoke={})


def _without_unsubscribed(member: ConsumerMember, subscribed: Collection[bytes], owned: Owned | None) -> ConsumerMember:
    """Revoke the topics that the member unsubscribed from, without waiting for a new target."""
    removed = [topic for topic in member.assigned if topic not in subscribed]
    if not removed:
        return member
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic in subscribed}
    revoked = dict(member.to_revoke)
    for topic in removed:
        revoked[topic] = {**revoked.get(topic, {}), **member.assigned[topic]}
    if not _still_owns(owned, revoked):
        return member.moved_to(member.member_epoch, member.state, assigned=kept)
    return member.moved_to(member.member_epoch, MemberState.UNREVOKED, assigned=kept, to_revoke=revoked)


def _still_owns(owned: Owned | None, partitions: PartitionEpochs) -> bool:
    """Return True if the member may still own any of the partitions. It does unless it reports otherwise."""
    return bool(partitions) and (owned is None or overlaps(partitions, owned))
