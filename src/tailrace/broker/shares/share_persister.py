"""SharePersister: share groups' state, wherever it is kept.

What is asked has ShareStates' form, and is asked there where this broker leads the partition of `__share_group_state`,
else of the broker that does. While that cannot answer (it is being loaded, or another one by now, or out of reach)
it is asked again, for a while: no client of share groups expects to hear of that.

In a cluster what is asked of one share partition is asked in order, one after the other. A write that had to be tried
again must not come behind a later one: the start offset would go back. Writes that wait meanwhile go as one.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.shares.share_questions import Delete, Initialize, Question, Read, Summarize, Write
from tailrace.broker.shares.share_states import ShareStates
from tailrace.coordinator.runtime import Answer, Refuse
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.state.share_state import ShareState
from tailrace.shares.state.share_state_coordinator import SharePartitionKey, ShareWrite

PATIENCE_MS: Final = 20_000  # less than a client waits for its answer
RETRY_MS: Final = 20
RETRY_MS_MAX: Final = 1_000
_LATER: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)


class _Asked:
    __slots__ = ("answers", "key", "question", "refusals", "retry_ms", "until_ms")

    def __init__(
        self, key: SharePartitionKey, question: Question[Any], answer: Answer[Any], refuse: Refuse, until_ms: int
    ) -> None:
        self.key = key
        self.question = question
        self.answers = [answer]
        self.refusals = [refuse]
        self.until_ms = until_ms
        self.retry_ms = RETRY_MS

    def absorb(self, later: _Asked) -> bool:
        """Make what is asked later part of this, if it can be; whether it is now."""
        if not isinstance(self.question, Write) or not isinstance(later.question, Write):
            return False
        both = self.question.with_later(later.question)
        if both is None:
            return False
        self.question = both
        self.answers += later.answers
        self.refusals += later.refusals
        return True


class SharePersister:
    def __init__(self, states: ShareStates, peers: ShareStatePeers | None = None) -> None:
        """`peers`: how to ask other brokers; None if the broker is alone."""
        self._peers = peers
        self._states = states
        self._lines: dict[SharePartitionKey, deque[_Asked]] = {}  # what waits behind what is asked
        self._postponed: list[tuple[int, int, _Asked]] = []  # a heap, by when they are asked again
        self._numbers = count()

    # What is asked

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
        self, key: SharePartitionKey, leader_epoch: int, answer: Answer[ShareState], refuse: Refuse, now_ms: int
    ) -> None:
        self._ask(key, Read(leader_epoch), answer, refuse, now_ms)

    def write(
        self, key: SharePartitionKey, write: ShareWrite, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int
    ) -> None:
        self._ask(key, Write(write), answer, refuse, now_ms)

    def read_summary(
        self, key: SharePartitionKey, answer: Answer[ShareState | None], refuse: Refuse, now_ms: int
    ) -> None:
        self._ask(key, Summarize(), answer, refuse, now_ms)

    def delete(self, key: SharePartitionKey, answer: Answer[ErrorCode], refuse: Refuse, now_ms: int) -> None:
        self._ask(key, Delete(), answer, refuse, now_ms)

    # Asking

    def _ask(
        self, key: SharePartitionKey, question: Question[Any], answer: Answer[Any], refuse: Refuse, now_ms: int
    ) -> None:
        asked = _Asked(key, question, answer, refuse, now_ms + PATIENCE_MS)
        if self._peers is None:
            self._try(asked, now_ms)
            return
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque()
            self._try(asked, now_ms)
        elif not (line and line[-1].absorb(asked)):
            line.append(asked)

    def _try(self, asked: _Asked, now_ms: int) -> None:
        def answered(result: Any, now_ms: int) -> None:
            self._go_on(asked.key, now_ms)
            for answer in asked.answers:
                answer(result, now_ms)

        def refused(error: KafkaError, now_ms: int, *, is_from_elsewhere: bool = False) -> None:
            # A topic that is not known elsewhere may be so new that it is not known there yet.
            is_late = is_from_elsewhere and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if now_ms < asked.until_ms and (is_late or error.code in _LATER):
                heappush(self._postponed, (now_ms + asked.retry_ms, next(self._numbers), asked))
                asked.retry_ms = min(2 * asked.retry_ms, RETRY_MS_MAX)
                return
            self._go_on(asked.key, now_ms)
            for refuse in asked.refusals:
                refuse(error, now_ms)

        peers = self._peers
        coordinator = None if peers is None else self._states.coordinator_of(asked.key)
        if peers is None or coordinator is None or coordinator == peers.node_id:
            asked.question.ask(self._states, asked.key, answered, refused, now_ms)
        elif coordinator < 0:
            refused(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"nobody keeps the state of {asked.key}"), now_ms)
        else:
            peers.ask(
                coordinator,
                asked.key,
                asked.question,
                answered,
                lambda error, now_ms: refused(error, now_ms, is_from_elsewhere=True),
                now_ms,
            )

    def _go_on(self, key: SharePartitionKey, now_ms: int) -> None:
        """Something has been answered: what is next in line is asked."""
        line = self._lines.get(key)
        if line is None:
            return
        if line:
            self._try(line.popleft(), now_ms)
        else:
            del self._lines[key]

    # Time

    def tick(self, now_ms: int) -> None:
        while self._postponed and self._postponed[0][0] <= now_ms:
            self._try(heappop(self._postponed)[2], now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._postponed[0][0] if self._postponed else None
