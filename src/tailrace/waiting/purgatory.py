"""Purgatory: where requests wait for local state: enough bytes, enough acknowledgements, or their deadline.

An operation is watched by keys. Whoever changes something says so with `check(key)`, and every operation watched by
that key is tried again; `expire(now_ms)` ends those whose deadline has come.

- Tried once before it is parked. Tried again after, if anything was reported meanwhile: the first try may itself have
  set something off, and a change that is reported before the operation is watched would otherwise be missed.
- An operation ends once: completed, expired or cancelled. It then leaves every watch list and its deadline at once, so
  memory is bounded by what is waiting and not by what has waited.
- A key may stand for others: after `link(partition, session)` a check of the partition also tries what is watched by
  the session. So a fetch session says once which partitions it is about, not with every fetch that waits.
- Deadlines are buckets of operations by the millisecond, and a heap of those milliseconds.
- An operation that raises leaves, and `on_error` is called with it; the operations beside it are not affected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

_SLACK = 64  # dead milliseconds that the heap may hold before it is swept


class DelayedOperation:
    """Something that waits. `try_complete` and `expire` answer whoever asked for it."""

    __slots__ = ("_keys", "_purgatory", "deadline_ms", "woken_by")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.woken_by: Hashable | None = None  # the key whose check tries it now
        self._keys: tuple[Hashable, ...] = ()
        self._purgatory: Purgatory | None = None  # where it waits

    @property
    def is_waiting(self) -> bool:
        return self._purgatory is not None

    def try_complete(self, now_ms: int) -> bool:
        """True if it could be answered, and then it has been."""
        raise NotImplementedError

    def expire(self, now_ms: int) -> None:
        """Its deadline has come: answer with what there is."""
        raise NotImplementedError


class PurgatoryStatistics(NamedTuple):
    waiting: int
    watched_keys: int
    linked_keys: int
    completed: int
    expired: int


class Purgatory:
    def __init__(self, on_error: Callable[[DelayedOperation, Exception, int], None] | None = None) -> None:
        self._watched: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._links: dict[Hashable, dict[Hashable, None]] = {}
        self._buckets: dict[int, dict[DelayedOperation, None]] = {}
        self._deadlines: list[int] = []
        self._waiting = 0
        self._checks = 0
        self._completed = 0
        self._expired = 0
        self._on_error = on_error or _raise

    def __len__(self) -> int:
        return self._waiting

    # Waiting

    def try_complete_or_watch(self, operation: DelayedOperation, keys: Iterable[Hashable], now_ms: int) -> bool:
        """Complete the operation now, or let it wait; says whether it is complete."""
        checks = self._checks
        if operation.try_complete(now_ms):
            self._completed += 1
            return True
        self._park(operation, tuple(keys))
        if checks == self._checks:
            return False
        return self._try(operation, None, now_ms)

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Let an operation wait that is known not to be complete."""
        self._park(operation, tuple(keys))

    def _park(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> None:
        assert operation._purgatory is None, f"{operation} is waiting already"
        operation._purgatory = self
        operation._keys = keys
        watched = self._watched
        for key in keys:
            operations = watched.get(key)
            if operations is None:
                watched[key] = {operation: None}
            else:
                operations[operation] = None
        bucket = self._buckets.get(operation.deadline_ms)
        if bucket is None:
            self._buckets[operation.deadline_ms] = {operation: None}
            heappush(self._deadlines, operation.deadline_ms)
        else:
            bucket[operation] = None
        self._waiting += 1

    def _leave(self, operation: DelayedOperation) -> None:
        operation._purgatory = None
        watched = self._watched
        for key in operation._keys:
            operations = watched.get(key)
            if operations is not None:  # a key that was given twice
                operations.pop(operation, None)
                if not operations:
                    del watched[key]
        operation._keys = ()
        bucket = self._buckets.get(operation.deadline_ms)
        if bucket is not None:
            bucket.pop(operation, None)
            if not bucket:
                del self._buckets[operation.deadline_ms]
                self._sweep()
        self._waiting -= 1

    def _sweep(self) -> None:
        """A deadline without operations stays in the heap until it is reached; not too many of them at a time."""
        if len(self._deadlines) > 2 * len(self._buckets) + _SLACK:
            self._deadlines = list(self._buckets)
            heapify(self._deadlines)

    # Something changed

    def check(self, key: Hashable, now_ms: int) -> int:
        """Try what is watched by a key, or by one linked to it; how many operations that completed."""
        self._checks += 1
        completed = 0
        operations = self._watched.get(key)
        if operations is not None:
            completed = self._try_all(operations, key, now_ms)
        links = self._links.get(key)
        if links is not None:
            for linked in tuple(links):
                operations = self._watched.get(linked)
                if operations is not None:
                    completed += self._try_all(operations, key, now_ms)
        return completed

    def _try_all(self, operations: dict[DelayedOperation, None], key: Hashable, now_ms: int) -> int:
        completed = 0
        for operation in tuple(operations):
            # An earlier one's answer may have ended a later one.
            if operation._purgatory is self and self._try(operation, key, now_ms):
                completed += 1
        return completed

    def _try(self, operation: DelayedOperation, key: Hashable | None, now_ms: int) -> bool:
        operation.woken_by = key
        try:
            is_complete = operation.try_complete(now_ms)
        except Exception as error:
            self.cancel(operation)
            self._on_error(operation, error, now_ms)
            return False
        if not is_complete:
            return False
        if operation._purgatory is self:
            self._leave(operation)
        self._completed += 1
        return True

    # A key that stands for others

    def link(self, key: Hashable, to: Hashable) -> None:
        """From now on a check of `key` also tries what is watched by `to`."""
        self._links.setdefault(key, {})[to] = None

    def unlink(self, key: Hashable, to: Hashable) -> None:
        links = self._links.get(key)
        if links is not None:
            links.pop(to, None)
            if not links:
                del self._links[key]

    # Deadlines

    def next_deadline_ms(self) -> int | None:
        if not self._deadlines:
            return None
        while self._deadlines and self._deadlines[0] not in self._buckets:
            heappop(self._deadlines)
        return self._deadlines[0] if self._deadlines else None

    def expire(self, now_ms: int) -> int:
        """End every operation whose deadline has come; how many there were."""
        expired = 0
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            for operation in tuple(self._buckets[deadline_ms]):
                if operation._purgatory is self:
                    self._leave(operation)
                    operation.woken_by = None
                    expired += 1
                    try:
                        operation.expire(now_ms)
                    except Exception as error:
                        self._on_error(operation, error, now_ms)
        self._expired += expired
        return expired

    def cancel(self, operation: DelayedOperation) -> bool:
        """Forget an operation that nobody waits for any more; says whether it was waiting."""
        if operation._purgatory is not self:
            return False
        self._leave(operation)
        return True

    def watched_by(self, key: Hashable) -> int:
        """Return how many operations are watched by a key."""
        return len(self._watched.get(key, ()))

    def waiting_by_kind(self) -> Counter[str]:
        """How many operations of each class wait; looks at every one of them."""
        return Counter(type(operation).__name__ for bucket in self._buckets.values() for operation in bucket)

    def statistics(self) -> PurgatoryStatistics:
        return PurgatoryStatistics(self._waiting, len(self._watched), len(self._links), self._completed, self._expired)


def _raise(_: DelayedOperation, error: Exception, __: int) -> None:
    raise error
