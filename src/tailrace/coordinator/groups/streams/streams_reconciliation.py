"""The next step of a member of a streams group from the tasks it has towards those it shall have.

As with partitions (`reconciliation.py`): first it lets go and says so, then it moves to the epoch of the target, and
gets the rest as others release it. An active task has one owner in the whole group; and no process has a task twice, be
it active, as a standby or as a warmup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

from tailrace.coordinator.groups.streams.streams_member import (
    NO_TASKS,
    HeldTasks,
    StreamsMember,
    StreamsState,
    Tasks,
    TaskSets,
)
from tailrace.model.errors import ErrorCode, KafkaError


class Holders(Protocol):
    """Which processes have a task now, or have not let go of it."""

    def active(self, subtopology: str, partition: int) -> str | None: ...

    def is_copied_by(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Whether a process has it as a standby or a warmup."""


def reconcile_tasks(
    member: StreamsMember, target_epoch: int, target: Tasks, owned: Tasks | None, holders: Holders
) -> StreamsMember:
    """`owned` is what the member says that it has; None if it did not say."""
    if member.state is StreamsState.STABLE:
        if member.member_epoch == target_epoch:
            return member
        return _step(member, member.member_epoch, target_epoch, target, owned, holders)
    if member.state is StreamsState.UNREVOKED_TASKS:
        if owned is None or member.to_revoke.is_in(owned):
            return member
        return _step(member, member.member_epoch + 1, target_epoch, target, owned, holders)
    if member.state is StreamsState.UNRELEASED_TASKS:
        return _step(member, member.member_epoch, target_epoch, target, owned, holders)
    if owned is None or not owned.is_empty:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
        )
    return _step(member, target_epoch, target_epoch, target, owned, holders)


class _Difference(NamedTuple):
    keeps: dict[str, dict[int, int]]
    loses: dict[str, dict[int, int]]
    gets: dict[str, dict[int, int]]
    waits: bool


def _difference(
    has: Mapping[str, Mapping[int, int]], wanted: TaskSets, epoch: int, is_unreleased: Callable[[str, int], bool]
) -> _Difference:
    keeps: dict[str, dict[int, int]] = {}
    loses: dict[str, dict[int, int]] = {}
    gets: dict[str, dict[int, int]] = {}
    waits = False
    for name, epochs in has.items():
        for partition, since in epochs.items():
            (keeps if partition in wanted.get(name, ()) else loses).setdefault(name, {})[partition] = since
    for name, partitions in wanted.items():
        for partition in partitions:
            if partition in keeps.get(name, ()):
                continue
            if is_unreleased(name, partition):
                waits = True
            else:
                gets.setdefault(name, {})[partition] = epoch
    return _Difference(keeps, loses, gets, waits)


def _step(
    member: StreamsMember, epoch: int, target_epoch: int, target: Tasks, owned: Tasks | None, holders: Holders
) -> StreamsMember:
    own = member.process_id

    def is_unreleased(name: str, partition: int) -> bool:
        return holders.active(name, partition) is not None or holders.is_copied_by(own, name, partition)

    def is_here(name: str, partition: int) -> bool:
        return holders.active(name, partition) == own or holders.is_copied_by(own, name, partition)

    active = _difference(member.assigned.active, target.active, target_epoch, is_unreleased)
    standby = _difference(_with_epochs(member.assigned.standby), target.standby, 0, is_here)
    warmup = _difference(_with_epochs(member.assigned.warmup), target.warmup, 0, is_here)
    keeps = HeldTasks(active.keeps, _sets(standby.keeps), _sets(warmup.keeps))
    loses = HeldTasks(active.loses, _sets(standby.loses), _sets(warmup.loses))
    if not loses.is_empty and (owned is None or loses.is_in(owned)):
        return _moved(member, epoch, StreamsState.UNREVOKED_TASKS, keeps, loses)
    has = HeldTasks(
        _merged(active.keeps, active.gets),
        _sets(_merged(standby.keeps, standby.gets)),
        _sets(_merged(warmup.keeps, warmup.gets)),
    )
    waits = active.waits or standby.waits or warmup.waits
    return _moved(member, target_epoch, StreamsState.UNRELEASED_TASKS if waits else StreamsState.STABLE, has)


def _moved(
    member: StreamsMember, epoch: int, state: StreamsState, assigned: HeldTasks, to_revoke: HeldTasks = NO_TASKS
) -> StreamsMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        to_revoke=to_revoke,
    )


def _with_epochs(sets: TaskSets) -> dict[str, dict[int, int]]:
    return {name: dict.fromkeys(partitions, 0) for name, partitions in sets.items()}


def _sets(epochs: Mapping[str, Mapping[int, int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(partitions) for name, partitions in epochs.items()}


def _merged(
    first: Mapping[str, Mapping[int, int]], second: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, int]]:
    merged = {name: dict(epochs) for name, epochs in first.items()}
    for name, epochs in second.items():
        merged.setdefault(name, {}).update(epochs)
    return merged
