"""StreamsMember: a member of a streams group (KIP-1071), as the log describes it.

A member is one thread of a Kafka Streams application. The threads of one process have the same `process_id`. A member
is assigned tasks: a subtopology and a partition number of its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from tailrace.coordinator.groups.epoch.epoch_member import LEAVE_EPOCH, EpochMember
from tailrace.coordinator.groups.epoch.reconciliation import overlaps

TaskSets: TypeAlias = Mapping[str, frozenset[int]]  # subtopology → partitions
TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]  # subtopology → partition → epoch of its assignment

_NONE: Mapping[str, Any] = MappingProxyType({})


class Tasks(NamedTuple):
    """The tasks of a target assignment, or those that a member reports."""

    active: TaskSets = _NONE
    standby: TaskSets = _NONE
    warmup: TaskSets = _NONE

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class HeldTasks(NamedTuple):
    """The tasks that a member has; active tasks with the epoch in which they were assigned."""

    active: TaskEpochs = _NONE
    standby: TaskSets = _NONE
    warmup: TaskSets = _NONE

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def is_in(self, owned: Tasks) -> bool:
        """Return True if any of these tasks is among the tasks that a member reports."""
        return (
            overlaps(self.active, owned.active)
            or overlaps(self.standby, owned.standby)
            or overlaps(self.warmup, owned.warmup)
        )


NO_TASKS = HeldTasks()


class Endpoint(NamedTuple):
    """The address of an application's interactive queries (`application.server`)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember(EpochMember):
    previous_epoch: int = 0
    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: HeldTasks = NO_TASKS
    to_revoke: HeldTasks = NO_TASKS

    def without_assignment(self) -> StreamsMember:
        return replace(
            self, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_TASKS, to_revoke=NO_TASKS
        )

    def assigned_since(self, subtopology: str, partition: int) -> int | None:
        """Return the epoch in which the member got an active task that it still has or must revoke; None if neither."""
        epoch = self.assigned.active.get(subtopology, {}).get(partition)
        return self.to_revoke.active.get(subtopology, {}).get(partition) if epoch is None else epoch
