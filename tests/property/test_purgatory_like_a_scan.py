"""A purgatory does what a naive scan over everything that waits would do."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tailrace.waiting.purgatory import DelayedOperation, Purgatory

KEYS = st.sampled_from("abcdef")
LINKED = st.sampled_from("xyz")


class Counted(DelayedOperation):
    """Done when the sum of its counters reaches what it needs."""

    def __init__(self, number: int, deadline_ms: int, keys: list[str], need: int, counters: dict[str, int]) -> None:
        super().__init__(deadline_ms)
        self.number = number
        self.keys = keys
        self.need = need
        self.counters = counters
        self.answers: list[tuple[str, int]] = []

    @property
    def is_ready(self) -> bool:
        return sum(self.counters.values()) >= self.need

    def try_complete(self, now_ms: int) -> bool:
        if self.is_ready:
            self.answers.append(("completed", now_ms))
        return self.is_ready

    def expire(self, now_ms: int) -> None:
        self.answers.append(("expired", now_ms))


class PurgatoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.purgatory = Purgatory()
        self.now_ms = 0
        self.counters = dict.fromkeys("abcdef", 0)
        self.all: list[Counted] = []
        self.waiting: list[Counted] = []  # the naive model
        self.links: set[tuple[str, str]] = set()
        self.expected: dict[int, tuple[str, int]] = {}

    @rule(keys=st.lists(KEYS | LINKED, max_size=4), need=st.integers(0, 12), wait_ms=st.integers(1, 50))
    def park(self, keys: list[str], need: int, wait_ms: int) -> None:
        operation = Counted(len(self.all), self.now_ms + wait_ms, keys, need, self.counters)
        self.all.append(operation)
        done = self.purgatory.try_complete_or_watch(operation, keys, self.now_ms)
        assert done == operation.is_ready
        if done:
            self.expected[operation.number] = ("completed", self.now_ms)
        else:
            self.waiting.append(operation)

    @rule(key=KEYS, by=st.integers(0, 3), report=st.booleans())
    def change(self, key: str, by: int, report: bool) -> None:
        self.counters[key] += by
        if not report:
            return
        reached = {key} | {to for source, to in self.links if source == key}
        done = [one for one in self.waiting if reached & set(one.keys) and one.is_ready]
        for operation in done:
            self.waiting.remove(operation)
            self.expected[operation.number] = ("completed", self.now_ms)
        assert self.purgatory.check(key, self.now_ms) == len(done)

    @rule(key=KEYS, to=LINKED)
    def link(self, key: str, to: str) -> None:
        self.links.add((key, to))
        self.purgatory.link(key, to)

    @rule(key=KEYS, to=LINKED)
    def unlink(self, key: str, to: str) -> None:
        self.links.discard((key, to))
        self.purgatory.unlink(key, to)

    @rule(by=st.integers(1, 40))
    def pass_time(self, by: int) -> None:
        self.now_ms += by
        over = [one for one in self.waiting if one.deadline_ms <= self.now_ms]
        for operation in over:
            self.waiting.remove(operation)
            self.expected[operation.number] = ("expired", self.now_ms)
        assert self.purgatory.expire(self.now_ms) == len(over)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.waiting:
            operation = data.draw(st.sampled_from(self.waiting))
            self.waiting.remove(operation)
            assert self.purgatory.cancel(operation)

    @invariant()
    def the_same_ones_wait(self) -> None:
        reported = self.purgatory.statistics()
        assert reported.waiting == len(self.waiting)
        assert reported.watched_keys == len({key for one in self.waiting for key in one.keys})
        assert reported.linked_keys == len({source for source, _ in self.links})
        assert self.purgatory.next_deadline_ms() == min((one.deadline_ms for one in self.waiting), default=None)
        assert len(self.purgatory._deadlines) <= 2 * len(self.waiting) + 65

    @invariant()
    def everyone_was_answered_once_and_rightly(self) -> None:
        for operation in self.all:
            expected = self.expected.get(operation.number)
            assert operation.answers == ([] if expected is None else [expected])


TestPurgatory = PurgatoryMachine.TestCase
TestPurgatory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
