"""Work that waits for its time."""

from __future__ import annotations

from tailrace.log.upkeep.deferred import Deferred


def test_due_work_runs_in_the_order_of_its_times_then_of_its_addition() -> None:
    done: list[str] = []
    deferred = Deferred()
    deferred.add(20, lambda: done.append("c"))
    deferred.add(10, lambda: done.append("a"))
    deferred.add(10, lambda: done.append("b"))
    deferred.add(21, lambda: done.append("later"))
    assert deferred.run_due(20) == 3
    assert done == ["a", "b", "c"]
    assert (len(deferred), deferred.next_due_ms) == (1, 21)


def test_deferred_work_runs_once_and_not_before_its_time() -> None:
    done: list[int] = []
    deferred = Deferred()
    deferred.add(10, lambda: done.append(1))
    assert deferred.run_due(9) == 0
    assert deferred.run_due(10) == 1
    assert deferred.run_due(10) == 0
    assert done == [1]
    assert deferred.next_due_ms is None


def test_an_action_added_by_another_runs_at_once_if_it_is_due() -> None:
    done: list[str] = []
    deferred = Deferred()
    deferred.add(5, lambda: deferred.add(4, lambda: done.append("added")))
    assert deferred.run_due(5) == 2
    assert done == ["added"]


def test_clear_removes_all_deferred_work() -> None:
    deferred = Deferred()
    deferred.add(1, lambda: None)
    deferred.clear()
    assert deferred.run_due(100) == 0
