"""Reconciliation: the steps by which a member gets from its current assignment to its target.

A partition or task is assigned only after its owner has confirmed that it has revoked it. So a member first revokes
what is not in its target, and confirms that in a heartbeat that lists what it owns. Then the member moves to the target
epoch. It gets the rest of its target as other members release it.

Consumer groups reconcile partitions by topic id, streams groups tasks by subtopology. Share groups have no
reconciliation: several members may have the same partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, NamedTuple, TypeVar

from tailrace.coordinator.groups.epoch.epoch_member import EpochMember, MemberState
from tailrace.model.errors import ErrorCode, KafkaError

K = TypeVar("K", bytes, str)  # a topic id, or the name of a subtopology


class Difference(NamedTuple, Generic[K]):
    """The partitions that a member keeps, must revoke, and can get now. `waits`: some of its target is not free yet."""

    kept: dict[K, dict[int, int]]
    revoked: dict[K, dict[int, int]]
    added: dict[K, dict[int, int]]
    waits: bool

    @property
    def assigned(self) -> dict[K, dict[int, int]]:
        """Return the member's partitions after it has revoked what it must."""
        merged = {key: dict(epochs) for key, epochs in self.kept.items()}
        for key, epochs in self.added.items():
            merged.setdefault(key, {}).update(epochs)
        return merged


def difference(
    current: Mapping[K, Mapping[int, int]],
    target: Mapping[K, Collection[int]],
    epoch: int,
    is_unreleased: Callable[[K, int], bool],
) -> Difference[K]:
    """Compare the current assignment with the target. Whatever `is_unreleased` still belongs to another member."""
    kept: dict[K, dict[int, int]] = {}
    revoked: dict[K, dict[int, int]] = {}
    added: dict[K, dict[int, int]] = {}
    waits = False
    for key, epochs in current.items():
        wanted = target.get(key, ())
        for partition, since in epochs.items():
            (kept if partition in wanted else revoked).setdefault(key, {})[partition] = since
    for key, partitions in target.items():
        for partition in partitions:
            if partition in kept.get(key, ()):
                continue
            if is_unreleased(key, partition):
                waits = True
            else:
                added.setdefault(key, {})[partition] = epoch
    return Difference(kept, revoked, added, waits)


def overlaps(some: Mapping[K, Collection[int]], others: Mapping[K, Collection[int]]) -> bool:
    return any(partition in others[key] for key in some.keys() & others.keys() for partition in some[key])


def contains(outer: Mapping[K, Collection[int]], inner: Mapping[K, Collection[int]]) -> bool:
    return all(partition in outer.get(key, ()) for key, partitions in inner.items() for partition in partitions)


def can_step(member: EpochMember, target_epoch: int, *, has_revoked: bool, owns_nothing: bool, fence: str) -> bool:
    """Return False if the member stays as it is: it has its target, or it still has something to revoke.

    Raise FENCED_MEMBER_EPOCH with the message `fence` if its state is unknown, unless it owns nothing.
    """
    if member.state is MemberState.STABLE:
        return member.member_epoch != target_epoch
    if member.state is MemberState.UNREVOKED:
        return has_revoked
    if member.state is MemberState.UNKNOWN and not owns_nothing:
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, fence)
    return True
