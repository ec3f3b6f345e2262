"""TargetComputations: target assignments of large groups, which a worker thread computes.

    heartbeat ──► begin ──► worker thread: compute ──► slices of records, one per timer ──► record of the target epoch

Meanwhile the group has its previous target, and members may join, change or leave. A result is dropped if one of its
members is gone, if the group is gone, or if a later target has been stored. The next heartbeat then begins again,
because the group epoch is still above the target epoch. The record of the target epoch is the last one, so that is also
true of a computation whose records are not all written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from tailrace.coordinator.groups.epoch.epoch_group import EpochGroup
from tailrace.coordinator.groups.epoch.epoch_records import EpochRecords
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.model.errors import ErrorCode
from tailrace.waiting.chore import Chore

_log = logging.getLogger(__name__)

G = TypeVar("G", bound=EpochGroup[Any, Any])
A = TypeVar("A")

COST_MAX: Final = 4_096  # subscribed topics of all members, and partitions: a few milliseconds
ITEMS_A_SLICE: Final = 2_048  # topics and partitions whose records are written without a pause


Submit: TypeAlias = Callable[[Chore], None]


class Target(NamedTuple, Generic[A]):
    """A target assignment that can be computed from facts that do not change."""

    epoch: int
    assignor: str
    before: Mapping[str, A]  # the previous target
    cost: int
    compute: Callable[[], Mapping[str, A]]


def log_target(group_id: str, target: Target[Any], members: int) -> None:
    _log.info(
        "group %s: target of epoch %d for %d members, assignor %s", group_id, target.epoch, members, target.assignor
    )


class _Computation(Generic[A]):
    """A target that is computed or written."""

    is_prompt = True  # members wait for it

    def __init__(self, target: Target[A], computed: Callable[[int], None], dropped: Callable[[], None]) -> None:
        self.target = target
        self._computed = computed
        self._dropped = dropped
        self.is_computed = False
        self.members: Mapping[str, A] = {}
        self.changed: list[tuple[str, A]] = []
        self.position = 0  # in `changed`: the first assignment that is not written

    def run(self) -> tuple[Mapping[str, A], list[tuple[str, A]]]:
        before, members = self.target.before, self.target.compute()
        return members, [(name, share) for name, share in members.items() if share != before.get(name)]

    def apply(self, result: tuple[Mapping[str, A], list[tuple[str, A]]], now_ms: int) -> None:
        self.members, self.changed = result
        self.is_computed = True
        self._computed(now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._dropped()
        raise error

    def take(self) -> list[tuple[str, A]]:
        """Return the assignments of the next slice."""
        first, items = self.position, 0
        while self.position < len(self.changed) and items < ITEMS_A_SLICE:
            items += _size(self.changed[self.position][1])
            self.position += 1
        return self.changed[first : self.position]


class TargetComputations(Generic[G, A]):
    def __init__(
        self, timers: Timers, find: Callable[[str], G | None], records: EpochRecords[Any, A], submit: Submit
    ) -> None:
        """`submit` runs work on another thread."""
        self._timers = timers
        self._find = find
        self._records = records
        self._submit = submit
        self._running: dict[str, _Computation[A]] = {}  # by group id

    def begin(self, group_id: str, target: Target[A]) -> None:
        """Compute and store a target, unless one of the group is being computed already."""
        if group_id in self._running:
            return
        write = partial(self._write, group_id)
        computation = _Computation(
            target,
            lambda now_ms: self._timers.schedule(("target", group_id), now_ms, write),
            lambda: self._drop_running(group_id),
        )
        self._running[group_id] = computation
        self._submit(computation)

    def _write(self, group_id: str, now_ms: int) -> StateChange[None] | None:
        """Write the next slice. The record of the target epoch is in the last one."""
        computation, group = self._running.get(group_id), self._find(group_id)
        if computation is None or not computation.is_computed:
            return None
        target = computation.target
        if (
            group is None
            or group.target_epoch >= target.epoch
            or not computation.members.keys() <= group.members.keys()
        ):
            self._drop_running(group_id)
            return None
        records: list[CoordinatorRecord] = [
            self._records.target_record(group_id, member_id, share) for member_id, share in computation.take()
        ]
        is_last = computation.position == len(computation.changed)
        if is_last:
            records.append(self._records.target_epoch_record(group_id, target.epoch, now_ms))

        def done(error: ErrorCode, now_ms: int) -> None:
            if is_last or error is not ErrorCode.NONE:
                self._drop_running(group_id)
                if error is ErrorCode.NONE:
                    log_target(group_id, target, len(computation.members))
            else:
                self._timers.schedule(("target", group_id), now_ms, partial(self._write, group_id))

        return StateChange(records, None, on_done=done)

    def _drop_running(self, group_id: str) -> None:
        self._running.pop(group_id, None)


def _size(assignment: Any) -> int:
    """Return the number of topics and partitions of an assignment, or of subtopologies and tasks."""
    if isinstance(assignment, Mapping):
        return len(assignment) + sum(map(len, assignment.values()))
    return sum(map(_size, assignment))
