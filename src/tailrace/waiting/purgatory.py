"""Purgatory: where requests wait for local state, such as enough bytes or acknowledgements, or for their deadline.

An operation is watched under keys. Code that changes state calls `check(key)`, and every operation watched under that
key is tried again. `expire(now_ms)` ends the operations whose deadline has passed.

- An operation is tried once before it is parked. If any `check` happened during that first try, it is tried again after
  it is parked. The first try may itself have caused the check, and a check before the operation is watched would
  otherwise be missed.
- An operation ends once: completed, expired or cancelled. It then leaves every watch list and its deadline at once, so
  memory is bounded by the waiting operations.
- A key may stand for others: after `link(partition, session)` a check of the partition also tries the operations
  watched under the session. A fetch session links its partitions once, instead of each waiting fetch doing so.
- Deadlines are buckets of operations by the millisecond, and a heap of those milliseconds.
- If an operation raises, it is removed and `on_error` is called with it. Other operations are not affected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush, nsmallest
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol

_KEYS_SHOWN = 10
_SLACK = 64  # empty deadlines that the heap may hold before it is swept


class WaitingClient(Protocol):
    """The client of a connection."""

    @property
    def principal(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def client_port(self) -> int: ...


class DelayedOperation:
    """A waiting operation. `try_complete` and `expire` send its response."""

    __slots__ = ("_keys", "_purgatory", "client", "client_id", "deadline_ms", "since_ms", "woken_by")
    ends_at_stop: ClassVar[bool] = False  # it waits only for new records, which a stopping broker does not get

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.woken_by: Hashable | None = None  # the key whose check is trying it now
        self.since_ms: int | None = None  # when it was parked
        self.client: WaitingClient | None = None  # None if no request of a client waits for it
        self.client_id: str | None = None
        self._keys: tuple[Hashable, ...] = ()
        self._purgatory: Purgatory | None = None  # the purgatory in which it waits

    @property
    def kind(self) -> str:
        """The name of its class, without the underscore of a private one."""
        return type(self).__name__.lstrip("_")

    def note_client(self, client: WaitingClient, client_id: str | None) -> None:
        """Note the client whose request waits."""
        self.client, self.client_id = client, client_id

    @property
    def is_waiting(self) -> bool:
        return self._purgatory is not None

    def try_complete(self, now_ms: int) -> bool:
        """Respond if the operation can be completed. Return True if it was."""
        raise NotImplementedError

    def expire(self, now_ms: int) -> None:
        """Respond with the current state, because the deadline has passed."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Return what the operation waits for, in a form that JSON can express."""
        return {}


class WaitingOperation(NamedTuple):
    """A waiting operation as it is shown to people: with the first few of the keys under which it is watched."""

    kind: str
    deadline_ms: int
    key_count: int
    keys: list[str]
    facts: dict[str, Any]
    since_ms: int | None = None
    client: WaitingClient | None = None
    client_id: str | None = None


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
        self._stop_ms: int | None = None  # when the broker began to stop
        self._on_error = on_error or _raise

    def __len__(self) -> int:
        return self._waiting

    # Waiting

    def try_complete_or_watch(self, operation: DelayedOperation, keys: Iterable[Hashable], now_ms: int) -> bool:
        """Complete the operation now or park it. Return True if it is complete."""
        checks = self._checks
        if operation.try_complete(now_ms):
            self._completed += 1
            return True
        self._park(operation, tuple(keys), now_ms)
        if checks == self._checks:
            return False
        return self._try_operation(operation, None, now_ms)

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable], now_ms: int | None = None) -> None:
        """Park an operation that is known not to be complete."""
        self._park(operation, tuple(keys), now_ms)

    def _park(self, operation: DelayedOperation, keys: tuple[Hashable, ...], now_ms: int | None) -> None:
        assert operation._purgatory is None, f"{operation} is waiting already"
        operation._purgatory = self
        operation._keys = keys
        if self._stop_ms is not None and operation.ends_at_stop:
            operation.deadline_ms = min(operation.deadline_ms, self._stop_ms)
        operation.since_ms = now_ms
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
            if operations is not None:  # None for a key that was given twice
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
        """Rebuild the heap if it holds too many deadlines without operations. They would otherwise stay until they are
        reached."""
        if len(self._deadlines) > 2 * len(self._buckets) + _SLACK:
            self._deadlines = list(self._buckets)
            heapify(self._deadlines)

    def waiting(self, limit: int) -> list[WaitingOperation]:
        """Return the waiting operations, the next deadline first, up to a limit."""
        found: list[WaitingOperation] = []
        for deadline_ms in nsmallest(limit, self._buckets):
            for operation in islice(self._buckets[deadline_ms], limit - len(found)):
                keys = [str(key) for key in operation._keys[:_KEYS_SHOWN]]
                found.append(
                    WaitingOperation(
                        operation.kind,
                        deadline_ms,
                        len(operation._keys),
                        keys,
                        operation.facts(),
                        operation.since_ms,
                        operation.client,
                        operation.client_id,
                    )
                )
            if len(found) >= limit:
                break
        return found

    # State changes

    def check(self, key: Hashable, now_ms: int) -> int:
        """Try the operations watched under a key, or under a key linked to it. Return how many were completed."""
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
            # The response of an earlier operation may have ended a later one.
            if operation._purgatory is self and self._try_operation(operation, key, now_ms):
                completed += 1
        return completed

    def _try_operation(self, operation: DelayedOperation, key: Hashable | None, now_ms: int) -> bool:
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

    # Linked keys

    def link(self, key: Hashable, to: Hashable) -> None:
        """Make a check of `key` also try the operations watched under `to`."""
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
        """End every operation whose deadline has passed. Return their number."""
        expired = 0
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            expired += self._expire(tuple(self._buckets[deadline_ms]), now_ms)
        return expired

    def expire_at_stop(self, now_ms: int) -> int:
        """End the operations that wait only for new records. Later ones expire with the next `expire`."""
        self._stop_ms = now_ms
        waiting = [operation for bucket in self._buckets.values() for operation in bucket if operation.ends_at_stop]
        return self._expire(waiting, now_ms)

    def _expire(self, operations: Iterable[DelayedOperation], now_ms: int) -> int:
        expired = 0
        for operation in operations:
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
        """Remove an operation whose result is no longer needed. Return True if it was waiting."""
        if operation._purgatory is not self:
            return False
        self._leave(operation)
        return True

    def watched_by(self, key: Hashable) -> int:
        """Return how many operations are watched under a key."""
        return len(self._watched.get(key, ()))

    def waiting_by_kind(self) -> Counter[str]:
        """Return the number of waiting operations by class. This iterates over all of them."""
        return Counter(type(operation).__name__ for bucket in self._buckets.values() for operation in bucket)

    def statistics(self) -> PurgatoryStatistics:
        return PurgatoryStatistics(self._waiting, len(self._watched), len(self._links), self._completed, self._expired)


def _raise(_: DelayedOperation, error: Exception, __: int) -> None:
    raise error
