"""Reconciliation of a streams group: the next step of a member from its present tasks to its target tasks.

The order is that of consumer groups (`consumer_reconciliation.py`): the member revokes tasks and confirms that, then it
moves to the epoch of the target, then it gets new tasks as other members release them. An active task has one owner in
the whole group. A process has a task only once, be it active, standby or warmup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tailrace.coordinator.groups.epoch.epoch_member import MemberState
from tailrace.coordinator.groups.epoch.reconciliation import can_step, difference
from tailrace.coordinator.groups.streams.streams_member import NO_TASKS, HeldTasks, StreamsMember, Tasks, TaskSets

_FENCE = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."


class Holders(Protocol):
    """The processes that have a task now, or have not revoked it yet."""

    def active(self, subtopology: str, partition: int) -> str | None: ...

    def is_copied_by(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return True if the process has the task as a standby or a warmup."""


def reconcile_tasks(
    member: StreamsMember, target_epoch: int, target: Tasks, owned: Tasks | None, holders: Holders
) -> StreamsMember:
    """Return the member after its next step. `owned` is None if the heartbeat does not report it."""
    has_revoked = owned is not None and not member.to_revoke.is_in(owned)
    owns_nothing = owned is not None and owned.is_empty
    if not can_step(member, target_epoch, has_revoked=has_revoked, owns_nothing=owns_nothing, fence=_FENCE):
        return member
    process = member.process_id

    def is_unreleased(name: str, partition: int) -> bool:
        return holders.active(name, partition) is not None or holders.is_copied_by(process, name, partition)

    def is_in_process(name: str, partition: int) -> bool:
        return holders.active(name, partition) == process or holders.is_copied_by(process, name, partition)

    active = difference(member.assigned.active, target.active, target_epoch, is_unreleased)
    standby = difference(_with_epochs(member.assigned.standby), target.standby, 0, is_in_process)
    warmup = difference(_with_epochs(member.assigned.warmup), target.warmup, 0, is_in_process)
    kept = HeldTasks(active.kept, _sets(standby.kept), _sets(warmup.kept))
    revoked = HeldTasks(active.revoked, _sets(standby.revoked), _sets(warmup.revoked))
    if not revoked.is_empty and (owned is None or revoked.is_in(owned)):
        # A member that has just revoked tasks, and must revoke more, shows that by the next epoch.
        epoch = member.member_epoch + (member.state is MemberState.UNREVOKED)
        return member.moved_to(epoch, MemberState.UNREVOKED, assigned=kept, to_revoke=revoked)
    assigned = HeldTasks(active.assigned, _sets(standby.assigned), _sets(warmup.assigned))
    waits = active.waits or standby.waits or warmup.waits
    state = MemberState.UNRELEASED if waits else MemberState.STABLE
    return member.moved_to(target_epoch, state, assigned=assigned, to_revoke=NO_TASKS)


def _with_epochs(sets: TaskSets) -> dict[str, dict[int, int]]:
    return {name: dict.fromkeys(partitions, 0) for name, partitions in sets.items()}


def _sets(epochs: Mapping[str, Mapping[int, int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(partitions) for name, partitions in epochs.items()}
