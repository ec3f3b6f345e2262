"""StreamsMember: a member of a streams group (KIP-1071), as the log has it. Never changed: a change is another one.

A member is one thread of a Kafka Streams application; threads of one process have its `process_id` in common. What is
handed out are tasks: a subtopology and the number of a partition of its input.

STABLE             it has what it shall have
UNREVOKED_TASKS    it must let go of tasks first, and say so
UNRELEASED_TASKS   it waits for tasks that others have not let go of yet
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

TaskSets: TypeAlias = Mapping[str, frozenset[int]]  # subtopology → partitions
TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]  # subtopology → partition → epoch it was assigned in

_NONE: Mapping[str, Any] = MappingProxyType({})


class StreamsState(IntEnum):
    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127  # of a version that we do not know


class Tasks(NamedTuple):
    """What a member shall have, or says that it has."""

    active: TaskSets = _NONE
    standby: TaskSets = _NONE
    warmup: TaskSets = _NONE

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class HeldTasks(NamedTuple):
    """What a member has; of active tasks, since when."""

    active: TaskEpochs = _NONE
    standby: TaskSets = _NONE
    warmup: TaskSets = _NONE

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def is_in(self, owned: Tasks) -> bool:
        """Whether any of these is among what a member says that it has."""
        return _overlaps(self.active, owned.active) or any(
            _overlaps(mine, theirs) for mine, theirs in ((self.standby, owned.standby), (self.warmup, owned.warmup))
        )


NO_TASKS = HeldTasks()


def _overlaps(ours: Mapping[str, Collection[int]], theirs: Mapping[str, Collection[int]]) -> bool:
    return any(not frozenset(ours[name]).isdisjoint(theirs[name]) for name in ours.keys() & theirs.keys())


class Endpoint(NamedTuple):
    """Where the application answers queries (`application.server`)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    member_id: str
    member_epoch: int = 0
    previous_epoch: int = 0
    state: StreamsState = StreamsState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: HeldTasks = NO_TASKS
    to_revoke: HeldTasks = NO_TASKS

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is StreamsState.STABLE and self.member_epoch == target_epoch

    def assigned_since(self, subtopology: str, partition: int) -> int | None:
        """The epoch in which it got an active task that it still has, or has to let go of."""
        epoch = self.assigned.active.get(subtopology, {}).get(partition)
        return self.to_revoke.active.get(subtopology, {}).get(partition) if epoch is None else epoch
