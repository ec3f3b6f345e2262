"""Work that waits for its time."""

from __future__ import annotations

from tailrace.log.upkeep.deferred import Deferred


def test_what_is_due_runs_in_order_of_its_time_then_of_its_coming() -> None:
    done: list[str] = []
    deferred = Deferred()
    deferred.add(20, lambda: done.append("c"))
    deferred.add(10, lambda: done.append("a"))
    deferred.add(10, lambda: done.append("b"))
    deferred.add(21, lambda: done.append("later"))
    assert deferred.run_due(20) == 3
    assert done == ["a", "b", "c"]
    assert (len(deferred), deferred.next_due_ms) == (1, 21)


def test_nothing_runs_before_its_time_and_nothing_twice() -> None:
    done: list[int] = []
    deferred = Deferred()
    deferred.add(10, lambda: done.append(1))
    assert deferred.run_due(9) == 0
    assert deferred.run_due(10) == 1
    assert deferred.run_due(10) == 0
    assert done == [1]
    assert deferred.next_due_ms is None


def test_what_an_action_adds_and_is_due_already_runs_too() -> None:
    done: list[str] = []
    deferred = Deferred()
    deferred.add(5, lambda: deferred.add(4, lambda: done.append("added")))
    assert deferred.run_due(5) == 2
    assert done == ["added"]


def test_clear_forgets_everything() -> None:
    deferred = Deferred()
    deferred.add(1, lambda: None)
    deferred.clear()
    assert deferred.run_due(100) == 0
