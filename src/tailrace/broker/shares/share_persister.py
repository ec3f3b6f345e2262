"""SharePersister: reads and writes share group state, here or at another broker.

An operation is done by this broker's ShareCoordinator if it leads the partition of `__share_group_state`. Otherwise the
leader gets a request. An operation is retried for RETRY_TIMEOUT_MS while the coordinator is loading, has moved or
cannot be reached, because clients of share groups do not expect these errors.

In a cluster, operations on one share partition are done one after the other. If a retried write came after a later
write, the start offset would move back. Writes that wait are merged into one.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.shares.share_coordinator import ShareCoordinator
from tailrace.broker.shares.state_operations import Delete, Initialize, Read, StateOperation, Summarize, Write
from tailrace.coordinator.runtime import Answer, Refuse
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey, ShareWrite

RETRY_TIMEOUT_MS: Final = 20_000  # less than the request timeout of clients
RETRY_MS: Final = 20
RETRY_MS_MAX: Final = 1_000
_RETRIABLE: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)


class _Pending:
    """An operation that has no result yet."""

    __slots__ = ("answers", "key", "operation", "refusals", "retry_ms", "until_ms")

    def __init__(
        self, key: SharePartitionKey, operation: StateOperation[Any], answer: Answer[Any], refuse: Refuse, until_ms: int
    ) -> None:
        self.key = key
        self.operation = operation
        self.answers = [answer]
        self.refusals = [refuse]
        self.until_ms = until_ms
        self.retry_ms = RETRY_MS

    def absorb(self, later: _Pending) -> bool:
        """Merge a later write into this write. Return False if that is not possible."""
        if not isinstance(self.operation, Write) or not isinstance(later.operation, Write):
            return False
        both = self.operation.with_later(later.operation)
        if both is None:
            return False
        self.operation = both
        self.answers += later.answers
        self.refusals += later.refusals
        return True


class SharePersister:
    def __init__(self, states: ShareCoordinator, peers: ShareStatePeers | None = None) -> None:
        """`peers` sends requests to other brokers. It is None in a cluster of one node."""
        self._peers = peers
        self._states = states
        self._queues: dict[SharePartitionKey, deque[_Pending]] = {}  # waiting operations, by share partition
        self._postponed: list[tuple[int, int, _Pending]] = []  # a heap, by the time of the retry
        self._numbers = count()

    # Operations

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        answer: Answer[ErrorCode],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        self._ask(key, Initialize(state_epoch, start_offset), answer, refuse, now_ms)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, answer: Answer[PersistedState], refuse: Refuse, now_ms: int
    ) -> None:
        self._ask(key, Read(leader_epoch), answer, refuse, now_ms)

    def write(
        self, key: SharePartitionKey, write: ShareWrite, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int
    ) -> None:
        self._ask(key, Write(write), answer, refuse, now_ms)

    def read_summary(
        self, key: SharePartitionKey, answer: Answer[PersistedState | None], refuse: Refuse, now_ms: int
    ) -> None:
        self._ask(key, Summarize(), answer, refuse, now_ms)

    def delete(self, key: SharePartitionKey, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int) -> None:
        self._ask(key, Delete(), answer, refuse, now_ms)

    # Sending and retrying

    def _ask(
        self, key: SharePartitionKey, operation: StateOperation[Any], answer: Answer[Any], refuse: Refuse, now_ms: int
    ) -> None:
        asked = _Pending(key, operation, answer, refuse, now_ms + RETRY_TIMEOUT_MS)
        if self._peers is None:
            self._attempt(asked, now_ms)
            return
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque()
            self._attempt(asked, now_ms)
        elif not (queue and queue[-1].absorb(asked)):
            queue.append(asked)

    def _attempt(self, asked: _Pending, now_ms: int) -> None:
        def answered(result: Any, now_ms: int) -> None:
            self._do_next(asked.key, now_ms)
            for answer in asked.answers:
                answer(result, now_ms)

        def refused(error: KafkaError, now_ms: int, *, is_from_elsewhere: bool = False) -> None:
            # The other broker may not have read the metadata of a new topic yet.
            is_late = is_from_elsewhere and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if now_ms < asked.until_ms and (is_late or error.code in _RETRIABLE):
                heappush(self._postponed, (now_ms + asked.retry_ms, next(self._numbers), asked))
                asked.retry_ms = min(2 * asked.retry_ms, RETRY_MS_MAX)
                return
            self._do_next(asked.key, now_ms)
            for refuse in asked.refusals:
                refuse(error, now_ms)

        peers = self._peers
        coordinator = None if peers is None else self._states.coordinator_of(asked.key)
        if peers is None or coordinator is None or coordinator == peers.node_id:
            asked.operation.ask(self._states, asked.key, answered, refused, now_ms)
        elif coordinator < 0:
            refused(
                KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the state of {asked.key} has no coordinator now"),
                now_ms,
            )
        else:
            peers.ask(
                coordinator,
                asked.key,
                asked.operation,
                answered,
                lambda error, now_ms: refused(error, now_ms, is_from_elsewhere=True),
                now_ms,
            )

    def _do_next(self, key: SharePartitionKey, now_ms: int) -> None:
        """Do the next waiting operation of a share partition, after the one before has its result."""
        queue = self._queues.get(key)
        if queue is None:
            return
        if queue:
            self._attempt(queue.popleft(), now_ms)
        else:
            del self._queues[key]

    # Time

    def tick(self, now_ms: int) -> None:
        while self._postponed and self._postponed[0][0] <= now_ms:
            self._attempt(heappop(self._postponed)[2], now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._postponed[0][0] if self._postponed else None
