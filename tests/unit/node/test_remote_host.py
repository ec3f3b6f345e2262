"""The threads that wait for remote stores: bounded, and replaced if they do not return."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from tailrace.broker.startup.environment import RemoteHost
from tailrace.node.remote_host import ABANDONED_MAX, remote_host
from tests.support.memory_files import MemoryFiles

PATIENCE_S = 30


class Call:
    """Work that returns when the test lets it."""

    has_ended = False

    def __init__(self) -> None:
        self.began, self.may_return = threading.Event(), threading.Event()
        self.applied = False

    def run(self) -> None:
        self.began.set()
        assert self.may_return.wait(PATIENCE_S)

    def apply(self, result: Any, now_ms: int) -> None:
        self.applied = True

    def failed(self, error: BaseException, now_ms: int) -> None:
        raise AssertionError(error)

    def is_late(self, now_ms: int) -> bool:
        return False

    def expire(self, now_ms: int) -> None: ...


class Loop:
    """The calls that threads hand to the loop."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.host: RemoteHost = remote_host(MemoryFiles(), self._soon, lambda: 0)
        self.made: list[Call] = []

    def _soon(self, call: Callable[[], None]) -> bool:
        self.calls.put(call)
        return True

    def submit(self, threads: int = 1) -> Call:
        self.made.append(Call())
        self.host.submit("copy", self.made[-1], threads)
        return self.made[-1]

    def hung(self) -> Call:
        """Return a call that has begun and does not return."""
        call = self.submit()
        assert call.began.wait(PATIENCE_S)
        return call

    def until_applied(self, call: Call) -> None:
        while not call.applied:
            self.calls.get(timeout=PATIENCE_S)()


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    for call in made.made:
        call.may_return.set()


def test_an_abandoned_thread_is_replaced(loop: Loop) -> None:
    hung, waiting = loop.hung(), loop.submit()
    loop.host.abandon("copy", hung)
    assert waiting.began.wait(PATIENCE_S)
    waiting.may_return.set()
    loop.until_applied(waiting)


def test_an_abandoned_thread_ends_when_its_work_returns(loop: Loop) -> None:
    before = threading.active_count()
    hung = loop.hung()
    (thread,) = [one for one in threading.enumerate() if one.name.startswith("tailrace-remote-copy-1")][-1:]
    loop.host.abandon("copy", hung)
    hung.may_return.set()
    loop.until_applied(hung)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert threading.active_count() <= before


def test_the_number_of_abandoned_threads_is_bounded(loop: Loop) -> None:
    for _ in range(ABANDONED_MAX):
        loop.host.abandon("copy", loop.hung())
    last = loop.hung()
    loop.host.abandon("copy", last)
    names = [one.name for one in threading.enumerate() if one.name.startswith("tailrace-remote-copy")]
    loop.submit()
    after = [one.name for one in threading.enumerate() if one.name.startswith("tailrace-remote-copy")]
    assert after == names, "no thread is started in place of the last one"


def test_a_smaller_pool_ends_threads_and_a_larger_one_starts_them(loop: Loop) -> None:
    first, second = loop.submit(2), loop.submit(2)
    assert first.began.wait(PATIENCE_S)
    assert second.began.wait(PATIENCE_S)
    third = loop.submit(1)
    first.may_return.set()
    second.may_return.set()
    third.may_return.set()
    for call in (first, second, third):
        loop.until_applied(call)
    calls = [loop.submit(3) for _ in range(3)]
    for call in calls:
        assert call.began.wait(PATIENCE_S)
