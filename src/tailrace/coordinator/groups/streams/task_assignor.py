"""The sticky task assignor: tasks stay with their members as far as the load permits; the least loaded get the rest.

The load of a process is its number of tasks per member (thread). Standby copies of stateful tasks go to other processes
than the active task, if there are enough processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tailrace.coordinator.groups.streams.streams_member import Tasks
from tailrace.model.java.java_order import PriorityQueue, hash_map_capacity, hash_map_order


class TaskId(NamedTuple):
    subtopology: str
    partition: int


class SubtopologySpec(NamedTuple):
    task_count: int
    is_stateful: bool


class MemberSpec(NamedTuple):
    process_id: str
    tasks: Tasks  # the last target


class _Load:
    """A member in the queue, with its number of tasks when it was added."""

    __slots__ = ("count", "member_id")

    def __init__(self, member_id: str, count: int) -> None:
        self.member_id, self.count = member_id, count


class _Process:
    """The members of a process, and the tasks that they have been assigned so far."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}  # by member
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self.tasks: set[TaskId] = set()
        self.task_count = 0
        self._by_load: PriorityQueue[_Load] | None = None

    @property
    def load(self) -> float:
        return self.task_count / len(self.counts)

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Assign a task. Return the member's new number of tasks."""
        self._by_load = None
        return self._add(member_id, task, is_active)

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active)
        if self._by_load is None:
            order = hash_map_order(self.counts)
            self._by_load = PriorityQueue(lambda one: one.count, (_Load(name, self.counts[name]) for name in order))
        least = self._by_load.poll()
        assert least is not None, "a process has members"
        least.count = self._add(least.member_id, task, is_active)
        self._by_load.add(least)
        return least.count

    def _add(self, member_id: str, task: TaskId, is_active: bool) -> int:
        self.task_count += 1
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, set()).add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]


class _Quota:
    """The maximum number of tasks per member. Full members are left out of the average."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self._share()

    def _share(self) -> None:
        self.per_member = -(-self._tasks // self._members) if self._members else 0

    def note(self, count: int) -> None:
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self._share()


class _Member(NamedTuple):
    process_id: str
    member_id: str


def assign_tasks(
    members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
) -> dict[str, Tasks]:
    """Return the tasks of all members. Members are in the order of Kafka's map, subtopologies sorted by name."""
    return _Assignment(members, subtopologies, standby_replicas).run()


class _Assignment:
    def __init__(
        self, members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
    ) -> None:
        self._members = members
        self._subtopologies = subtopologies
        self._replicas = standby_replicas
        active = sum(one.task_count for one in subtopologies.values())
        copies = sum(one.task_count for one in subtopologies.values() if one.is_stateful) * standby_replicas
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + copies, len(members))
        self._processes: dict[str, _Process] = {}
        self._had_active: dict[TaskId, _Member] = {}
        self._had_standby: dict[TaskId, list[_Member]] = {}
        for member_id, spec in members.items():
            member = _Member(spec.process_id, member_id)
            self._processes.setdefault(spec.process_id, _Process()).counts[member_id] = 0
            for task in _tasks(spec.tasks.active):
                self._had_active[task] = member
            for task in _tasks(spec.tasks.standby):
                self._had_standby.setdefault(task, []).append(member)

    def run(self) -> dict[str, Tasks]:
        self._assign_active()
        if self._replicas > 0:
            self._assign_standby()
        shares = {}
        for member_id, spec in self._members.items():
            process = self._processes[spec.process_id]
            shares[member_id] = Tasks(
                _compact(process.active.get(member_id, ())), _compact(process.standby.get(member_id, ()))
            )
        return shares

    def _all_tasks(self, *, only_stateful: bool = False) -> list[TaskId]:
        return [
            TaskId(name, number)
            for name, one in self._subtopologies.items()
            if one.is_stateful or not only_stateful
            for number in range(one.task_count)
        ]

    def _by_load(self) -> PriorityQueue[_Process]:
        order = hash_map_order(self._processes, hash_map_capacity(len(self._members)))
        return PriorityQueue(lambda process: process.load, (self._processes[name] for name in order))

    def _count(self, member: _Member) -> int:
        return self._processes[member.process_id].counts[member.member_id]

    # Active tasks

    def _assign_active(self) -> None:
        tasks = sorted(self._all_tasks(), key=lambda task: (task.partition, task.subtopology))
        tasks = [task for task in tasks if not self._keep_active(task, self._had_active.get(task))]
        tasks = [
            task for task in tasks if not self._keep_active(task, self._least_loaded(self._had_standby.get(task, ())))
        ]
        queue = self._by_load()
        for task in sorted(tasks):
            process = queue.poll()
            assert process is not None, "there are members"
            self._note_active(process.add_to_least_loaded(task, is_active=True))
            queue.add(process)

    def _keep_active(self, task: TaskId, member: _Member | None) -> bool:
        if member is None or self._count(member) >= self._active_quota.per_member:
            return False
        self._note_active(self._processes[member.process_id].add(member.member_id, task, is_active=True))
        return True

    def _note_active(self, count: int) -> None:
        self._active_quota.note(count)
        self._quota.note(count)

    # Standby tasks

    def _assign_standby(self) -> None:
        left: list[tuple[TaskId, int]] = []
        tasks = self._all_tasks(only_stateful=True)
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology), reverse=True):
            for done in range(self._replicas):
                if not self._keep_standby(task):
                    left.append((task, self._replicas - done))
                    break
        left.sort(key=lambda one: one[0], reverse=True)
        queue = self._by_load()
        for task, replicas in left:
            for _ in range(replicas):
                if not self._give_standby(queue, task):
                    break  # there are fewer processes than copies

    def _keep_standby(self, task: TaskId) -> bool:
        for member in (self._had_active.get(task), self._least_loaded(self._had_standby.get(task, ()), task)):
            if member is None or task in self._processes[member.process_id].tasks:
                continue
            if self._count(member) < self._quota.per_member:
                self._quota.note(self._processes[member.process_id].add(member.member_id, task, is_active=False))
                return True
        return False

    def _give_standby(self, queue: PriorityQueue[_Process], task: TaskId) -> bool:
        passed_over = []
        found = False
        while not found and (process := queue.poll()) is not None:
            passed_over.append(process)
            if task not in process.tasks:
                self._quota.note(process.add_to_least_loaded(task, is_active=False))
                found = True
        for process in reversed(passed_over):
            queue.add(process)
        return found

    def _least_loaded(self, members: Iterable[_Member], task: TaskId | None = None) -> _Member | None:
        """Return the best member that had a standby copy and whose process does not have the task now."""
        candidates = list(members)
        if not candidates:
            return None
        best = candidates[0]
        first_process = self._processes[best.process_id]
        process_load, member_load = first_process.load, self._count(best)
        for member in candidates[1:]:
            process = self._processes[member.process_id]
            if process.load >= process_load or (task is not None and task in process.tasks):
                continue
            if self._count(member) < member_load:
                best, process_load, member_load = member, process.load, self._count(member)
        # Kafka checks the process of the first candidate here, even if another one has been chosen.
        return best if task is None or task not in first_process.tasks else None


def _tasks(sets: Mapping[str, Iterable[int]]) -> Iterable[TaskId]:
    return (TaskId(name, number) for name, numbers in sets.items() for number in numbers)


def _compact(tasks: Iterable[TaskId]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for task in tasks:
        found.setdefault(task.subtopology, set()).add(task.partition)
    return {name: frozenset(numbers) for name, numbers in found.items()}
