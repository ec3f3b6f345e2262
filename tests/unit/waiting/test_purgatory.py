"""Purgatory: operations are watched, checked and expired, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.waiting.purgatory import DelayedOperation, Purgatory


class Waiting(DelayedOperation):
    """An operation that completes when the test sets it ready, and records how it ended."""

    def __init__(self, deadline_ms: int = 1_000, name: str = "") -> None:
        super().__init__(deadline_ms)
        self.name = name
        self.is_ready = False
        self.tries: list[object] = []
        self.ended: list[str] = []
        self.on_try: Callable[[], None] = lambda: None

    def try_complete(self, now_ms: int) -> bool:
        self.tries.append(self.woken_by)
        is_ready = self.is_ready
        self.on_try()
        if is_ready:
            self.ended.append(f"completed at {now_ms}")
        return is_ready

    def expire(self, now_ms: int) -> None:
        self.ended.append(f"expired at {now_ms}")


def parked(purgatory: Purgatory, *keys: str, deadline_ms: int = 1_000, name: str = "") -> Waiting:
    operation = Waiting(deadline_ms, name)
    assert not purgatory.try_complete_or_watch(operation, keys, 0)
    return operation


def is_empty(purgatory: Purgatory) -> bool:
    reported = purgatory.statistics()
    return (reported.waiting, reported.watched_keys) == (0, 0) and purgatory.next_deadline_ms() is None


def test_a_complete_operation_is_not_parked() -> None:
    purgatory = Purgatory()
    operation = Waiting()
    operation.is_ready = True
    assert purgatory.try_complete_or_watch(operation, ["a"], 7)
    assert operation.ended == ["completed at 7"]
    assert is_empty(purgatory)


def test_a_check_of_any_key_completes_the_operation() -> None:
    for key in ("a", "b", "c"):
        purgatory = Purgatory()
        operation = parked(purgatory, "a", "b", "c")
        assert purgatory.check(key, 3) == 0
        operation.is_ready = True
        assert purgatory.check("other", 4) == 0
        assert purgatory.check(key, 5) == 1
        assert operation.ended == ["completed at 5"]
        assert operation.tries == [None, key, key]
        assert is_empty(purgatory)


def test_a_completed_operation_leaves_every_watch_list_and_its_deadline_at_once() -> None:
    purgatory = Purgatory()
    operation = parked(purgatory, *(f"key{n}" for n in range(1_000)))
    operation.is_ready = True
    purgatory.check("key500", 1)
    assert is_empty(purgatory)
    assert not operation.is_waiting
    assert purgatory.check("key1", 2) == 0
    assert purgatory.expire(10_000) == 0
    assert operation.ended == ["completed at 1"]


def test_deadlines_of_completed_operations_do_not_accumulate() -> None:
    purgatory = Purgatory()
    for n in range(10_000):
        operation = parked(purgatory, "a", deadline_ms=1_000_000 + n)
        operation.is_ready = True
        purgatory.check("a", n)
    assert len(purgatory._deadlines) < 100
    assert is_empty(purgatory)


def test_an_operation_expires_at_its_deadline_and_not_before() -> None:
    purgatory = Purgatory()
    late, soon = parked(purgatory, "a", deadline_ms=20), parked(purgatory, "a", deadline_ms=10)
    assert purgatory.next_deadline_ms() == 10
    assert purgatory.expire(9) == 0
    assert purgatory.expire(10) == 1
    assert (soon.ended, late.ended) == (["expired at 10"], [])
    assert purgatory.next_deadline_ms() == 20
    assert purgatory.expire(25) == 1
    assert late.ended == ["expired at 25"]
    assert is_empty(purgatory)


def test_the_earliest_deadline_expires_first() -> None:
    purgatory = Purgatory()
    order: list[int] = []
    for deadline_ms in (30, 10, 20):
        operation = parked(purgatory, "a", deadline_ms=deadline_ms)
        operation.expire = lambda now_ms, d=deadline_ms: order.append(d)  # type: ignore[method-assign]
    purgatory.expire(100)
    assert order == [10, 20, 30]


def test_a_check_before_the_operation_is_watched_is_not_missed() -> None:
    """The operation is tried once before it is parked and once after."""
    purgatory = Purgatory()
    operation = Waiting()

    def change() -> None:
        operation.on_try = lambda: None
        operation.is_ready = True
        purgatory.check("a", 0)

    operation.on_try = change
    assert purgatory.try_complete_or_watch(operation, ["a"], 0)
    assert len(operation.tries) == 2
    assert operation.ended == ["completed at 0"]
    assert is_empty(purgatory)


def test_without_a_check_an_operation_is_tried_once() -> None:
    purgatory = Purgatory()
    assert len(parked(purgatory, "a").tries) == 1


def test_a_key_given_twice_is_watched_once() -> None:
    purgatory = Purgatory()
    operation = parked(purgatory, "a", "a")
    operation.is_ready = True
    assert purgatory.check("a", 1) == 1
    assert operation.ended == ["completed at 1"]
    assert is_empty(purgatory)


def test_a_cancelled_operation_neither_completes_nor_expires() -> None:
    purgatory = Purgatory()
    operation = parked(purgatory, "a")
    assert purgatory.cancel(operation)
    assert not purgatory.cancel(operation)
    operation.is_ready = True
    assert purgatory.check("a", 1) == 0
    assert purgatory.expire(5_000) == 0
    assert operation.ended == []
    assert is_empty(purgatory)


def test_a_check_within_a_completion_completes_each_operation_once() -> None:
    purgatory = Purgatory()
    first, second = parked(purgatory, "a"), parked(purgatory, "a", "b")
    first.is_ready = second.is_ready = True
    first.on_try = lambda: purgatory.check("b", 1)
    assert purgatory.check("a", 1) == 1  # the inner check counted the other operation
    assert (len(first.ended), len(second.ended)) == (1, 1)
    assert purgatory.statistics().completed == 2
    assert is_empty(purgatory)


def test_an_operation_cancelled_by_an_earlier_completion_is_not_tried() -> None:
    purgatory = Purgatory()
    first, second = parked(purgatory, "a"), parked(purgatory, "a")
    first.is_ready = second.is_ready = True
    first.on_try = lambda: purgatory.cancel(second)
    assert purgatory.check("a", 1) == 1
    assert second.ended == []


def test_an_expiry_that_completes_an_operation_of_the_same_deadline_ends_each_once() -> None:
    purgatory = Purgatory()
    first, second = parked(purgatory, "a"), parked(purgatory, "b")
    second.is_ready = True
    expire = first.expire

    def expire_and_report(now_ms: int) -> None:
        expire(now_ms)
        purgatory.check("b", now_ms)

    first.expire = expire_and_report  # type: ignore[method-assign]
    assert purgatory.expire(1_000) == 1
    assert (first.ended, second.ended) == (["expired at 1000"], ["completed at 1000"])


def test_a_linked_key_is_checked_with_its_key() -> None:
    purgatory = Purgatory()
    purgatory.link("partition", "session")
    operation = parked(purgatory, "session")
    operation.is_ready = True
    assert purgatory.check("other", 1) == 0
    assert purgatory.check("partition", 2) == 1
    assert operation.woken_by == "partition"
    purgatory.unlink("partition", "session")
    assert purgatory.statistics().linked_keys == 0


def test_an_unlinked_key_is_not_checked() -> None:
    purgatory = Purgatory()
    purgatory.link("partition", "session")
    purgatory.unlink("partition", "session")
    purgatory.unlink("partition", "session")
    operation = parked(purgatory, "session")
    operation.is_ready = True
    assert purgatory.check("partition", 1) == 0
    assert purgatory.check("session", 1) == 1


def test_statistics_count_completed_and_expired_operations() -> None:
    purgatory = Purgatory()
    done, over = parked(purgatory, "a", "b"), parked(purgatory, "b")
    assert purgatory.statistics()[:3] == (2, 2, 0)
    assert len(purgatory) == 2
    done.is_ready = True
    purgatory.check("a", 1)
    purgatory.expire(1_000)
    assert purgatory.statistics() == (0, 0, 0, 1, 1)
    assert over.ended == ["expired at 1000"]


def test_a_stop_ends_operations_that_wait_only_for_new_records() -> None:
    class ForRecords(Waiting):
        ends_at_stop = True

    purgatory = Purgatory()
    waiting, other, late = ForRecords(), Waiting(), ForRecords()
    for operation in (waiting, other):
        purgatory.try_complete_or_watch(operation, ["a"], 0)
    assert purgatory.expire_at_stop(5) == 1
    assert (waiting.ended, other.ended) == (["expired at 5"], [])
    purgatory.try_complete_or_watch(late, ["a"], 5)
    assert purgatory.next_deadline_ms() == 5
    assert purgatory.expire(5) == 1
    assert (late.ended, len(purgatory)) == (["expired at 5"], 1)
