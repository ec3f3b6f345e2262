"""TaskHolders: the processes that have each task of a streams group, or have not revoked it yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tailrace.coordinator.groups.streams.streams_member import HeldTasks, StreamsMember


class TaskHolders:
    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._copies: dict[tuple[str, int, bool], set[str]] = defaultdict(set)  # True: a warmup task

    def active(self, subtopology: str, partition: int) -> str | None:
        return self._active.get((subtopology, partition))

    def is_copied_by(self, process_id: str, subtopology: str, partition: int) -> bool:
        return any(process_id in self._copies.get((subtopology, partition, kind), ()) for kind in (False, True))

    def put(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.to_revoke):
            for task in _task_ids(tasks.active):
                self._active[task] = member.process_id
            for key in _copies(tasks):
                self._copies[key].add(member.process_id)

    def remove(self, member: StreamsMember) -> None:
        for tasks in (member.assigned, member.to_revoke):
            for task in _task_ids(tasks.active):
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            for key in _copies(tasks):
                self._copies[key].discard(member.process_id)
                if not self._copies[key]:
                    del self._copies[key]


def _task_ids(tasks: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    return ((name, partition) for name, partitions in tasks.items() for partition in partitions)


def _copies(tasks: HeldTasks) -> Iterator[tuple[str, int, bool]]:
    for kind, sets in ((False, tasks.standby), (True, tasks.warmup)):
        for name, partition in _task_ids(sets):
            yield name, partition, kind
