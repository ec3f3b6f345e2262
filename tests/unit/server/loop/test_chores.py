"""Work on other threads, applied on this one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.server.loop.chores import Chores

ERRORS = InternalErrors(logging.getLogger(__name__))


class Noted:
    """A chore that runs a function and notes what came of it, and where."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.run = work
        self.results: list[tuple[Any, int, int]] = []
        self.errors: list[BaseException] = []

    def apply(self, result: Any, now_ms: int) -> None:
        self.results.append((result, now_ms, threading.get_ident()))

    def failed(self, error: BaseException, now_ms: int) -> None:
        self.errors.append(error)


def test_a_chore_runs_on_another_thread_and_is_applied_on_the_callers() -> None:
    woken = threading.Event()
    chores = Chores(2, woken.set)
    chore = Noted(threading.get_ident)
    chores.submit(chore)
    assert woken.wait(20)
    assert chores.apply_finished(77, ERRORS) == 1
    ((ran_on, now_ms, applied_on),) = chore.results
    assert ran_on != threading.get_ident()
    assert (now_ms, applied_on) == (77, threading.get_ident())
    assert (chores.unfinished, chores.completed, chores.failures) == (0, 1, 0)
    chores.close()


def test_results_are_applied_only_by_apply_finished() -> None:
    chores = Chores(1, lambda: None)
    chore = Noted(lambda: 1)
    chores.submit(chore)
    chores.close()
    assert chore.results == []
    assert chores.unfinished == 1
    assert chores.apply_finished(0, ERRORS) == 1
    assert chore.results[0][0] == 1


def test_an_exception_of_run_is_passed_to_failed() -> None:
    chores = Chores(1, lambda: None)
    chore = Noted(lambda: 1 // 0)
    chores.submit(chore)
    chores.close()
    chores.apply_finished(0, ERRORS)
    assert chore.results == []
    assert isinstance(chore.errors[0], ZeroDivisionError)
    assert chores.failures == 1


def test_a_chore_whose_apply_raises_does_not_affect_the_next_one() -> None:
    class Broken(Noted):
        def apply(self, result: Any, now_ms: int) -> None:
            raise RuntimeError("cannot be applied")

    chores, errors = Chores(1, lambda: None), InternalErrors(logging.getLogger(__name__))
    next_chore = Noted(lambda: 7)
    chores.submit(Broken(lambda: None))
    chores.submit(next_chore)
    chores.close()
    assert chores.apply_finished(0, errors) == 2
    assert [result for result, _, _ in next_chore.results] == [7]
    assert errors.counts == {"a chore": 1}


def test_chores_run_in_parallel_up_to_the_number_of_threads() -> None:
    """Each of two waits for the other; a third has to wait for one of them."""
    chores = Chores(2, lambda: None)
    meeting = threading.Barrier(2, timeout=20)
    running = []
    chores.submit(Noted(meeting.wait))
    chores.submit(Noted(meeting.wait))
    chores.submit(Noted(lambda: running.append(threading.active_count())))
    chores.close()
    assert chores.apply_finished(0, ERRORS) == 3
    assert chores.failures == 0
    assert running


def test_without_chores_there_are_no_threads() -> None:
    before = threading.active_count()
    chores = Chores(4, lambda: None)
    assert threading.active_count() == before
    chores.close()


def test_one_thread_runs_chores_in_order() -> None:
    order: list[int] = []
    chores = Chores(1, lambda: None)
    for number in range(50):
        chores.submit(Noted(lambda number=number: order.append(number)))
    chores.close()
    assert order == list(range(50))
    assert chores.apply_finished(0, ERRORS) == 50
