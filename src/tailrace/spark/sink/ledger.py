"""Ledger: the decisions about a query's micro-batches, stored in the target cluster.

The decisions are committed offsets of a group. The name of the group is the prefix of the query's transactional ids.
Only the driver writes there, always in a transaction with that name. So of two drivers only the latest one can write:
`open` fences the other.

    state = ledger.open()               before a micro-batch: fence, read, carry out the last decision
    ledger.decide(fence, decision)      atomic: from here on the micro-batch will become visible
    ledger.carry_out(decision)          commit the tasks' transactions, and mark the decision as finished

The protocol as a whole: docs/decisions/0020-exactly-once-sink.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import commit_offset, committed_offsets
from tailrace.client.producing.transactions import Transaction, TransactionLost, Transactions
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.spark.sink.decision import Decision, TaskOutput, from_notes, piece_count, to_notes
from tailrace.spark.sink.errors import AnotherDriver, NotWritten

FINISHED: Final = "finished"
SERIAL_MAX: Final = 8  # up to this number, transactions are ended one by one; more by several threads
THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to decide about the next micro-batch. A later `open` revokes it."""

    transaction: Transaction
    number: int  # of the last decision


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The state before a micro-batch."""

    fence: Fence
    last: Decision | None = None
    lost: tuple[TaskOutput, ...] = ()  # outputs of the last decision that were aborted before they could be committed


class Ledger:
    def __init__(self, coordinators: Coordinators, transactional_id: str, timeout_ms: int) -> None:
        self._coordinators = coordinators
        self._transactions = Transactions(self._coordinators)
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._task_ids = re.compile(re.escape(transactional_id) + r"-\d+-\d+")

    def open(self) -> LedgerState:
        """Take over from the previous driver. Its last decision is carried out; undecided transactions are aborted."""
        transaction = self._transactions.begin(self._id, self._timeout_ms)
        last = self.last_decision()
        lost: tuple[TaskOutput, ...] = ()
        if last is not None and self.finished_number() < last.number:
            lost = self.commit(last.outputs)
            if not lost:
                self._note_finished(last)
        self.abort_leftovers()
        return LedgerState(Fence(transaction, last.number if last else 0), last, lost)

    def decide(self, fence: Fence, decision: Decision) -> None:
        """Decide that a micro-batch is committed. Raise AnotherDriver if another driver has taken over."""
        notes = to_notes(decision)
        try:
            for group, note in zip(self._pages(len(notes)), notes, strict=True):
                partition = TopicPartition(decision.topic, 0)
                self._transactions.commit_offset(fence.transaction, group, partition, decision.number, note)
            self._transactions.end(fence.transaction, commit=True)
        except TransactionLost as error:
            raise AnotherDriver(
                f"batch {decision.batch} is not committed: is the same query running twice? {error}"
            ) from None

    def carry_out(self, decision: Decision) -> None:
        """Commit the transactions of a decision. Raise NotWritten if some were aborted before."""
        lost = self.commit(decision.outputs)
        if lost:
            tasks = ", ".join(str(output.task) for output in lost)
            raise NotWritten(
                f"batch {decision.batch} lacks the rows of task {tasks}: their transactions were aborted before they "
                "could be committed; restart the query to write them again"
            )
        self._note_finished(decision)
        self.abort_leftovers()

    def abort_batch(self, fence: Fence, outputs: Iterable[TaskOutput]) -> None:
        """Abort the tasks' transactions. If the decision was made after all, carry it out instead.

        If another driver has taken over, do nothing.
        """
        try:
            self._transactions.end(fence.transaction, commit=False)
        except TransactionLost as error:
            # INVALID_TXN_STATE: nothing to abort, or committed; the last decision shows which. With any other error,
            # this driver is fenced, and the new one takes care of the transactions.
            if error.code != ErrorCode.INVALID_TXN_STATE:
                return
        last = self.last_decision()
        if last is not None and last.number > fence.number:
            if not self.commit(last.outputs):
                self._note_finished(last)
        else:
            self.abort(outputs)

    def commit(self, outputs: Iterable[TaskOutput]) -> tuple[TaskOutput, ...]:
        """Commit tasks' transactions. Return the outputs whose transactions were aborted before."""
        wanted = list(outputs)
        return tuple(output for output, done in zip(wanted, self._end_all(wanted), strict=True) if not done)

    def _end_all(self, outputs: list[TaskOutput]) -> list[bool]:
        """Commit many transactions in parallel, over several connections: a broker handles one request of each."""
        if len(outputs) < SERIAL_MAX:
            return [self._try_end(output, commit=True) for output in outputs]
        cluster = self._coordinators.cluster

        def end_some(some: list[TaskOutput]) -> list[bool]:
            with ClusterClient(cluster.bootstrap, cluster.settings) as own:
                ledger = Ledger(Coordinators(own), self._id, self._timeout_ms)
                return [ledger._try_end(output, commit=True) for output in some]

        size = -(-len(outputs) // THREADS)
        parts = [outputs[start : start + size] for start in range(0, len(outputs), size)]
        with ThreadPoolExecutor(THREADS) as threads:
            return [done for part in threads.map(end_some, parts) for done in part]

    def abort(self, outputs: Iterable[TaskOutput]) -> None:
        """Abort tasks' transactions, and open transactions of other attempts."""
        for output in outputs:
            self._try_end(output, commit=False)  # if this fails, it was aborted before
        self.abort_leftovers()

    def _try_end(self, output: TaskOutput, *, commit: bool) -> bool:
        try:
            self._transactions.end(output.transaction(self._id), commit=commit)
        except TransactionLost:
            return False
        return True

    def abort_leftovers(self) -> None:
        """Abort open transactions of failed tasks and second attempts, because they block consumers."""
        for name in self._transactions.ongoing(self._task_ids):
            self._transactions.begin(name, self._timeout_ms)

    def last_decision(self) -> Decision | None:
        offsets = committed_offsets(self._coordinators, self._id)
        if not offsets:
            return None
        partition, newest = max(offsets.items(), key=lambda found: found[1].offset)
        more = self._pages(piece_count(newest.metadata))[1:]
        return from_notes(
            [newest.metadata, *(committed_offsets(self._coordinators, page)[partition].metadata for page in more)]
        )

    def _pages(self, count: int) -> list[str]:
        return [self._id, *(f"{self._id}-{number}" for number in range(1, count))]

    def finished_number(self) -> int:
        """Return the number of the last decision that is known to be carried out; 0 if there is none."""
        offsets = committed_offsets(self._coordinators, f"{self._id}-{FINISHED}")
        return max((found.offset for found in offsets.values()), default=0)

    def _note_finished(self, decision: Decision) -> None:
        """Mark the decision as finished, so that the next `open` is faster. Correctness does not depend on it."""
        partition = TopicPartition(decision.topic, 0)
        commit_offset(self._coordinators, f"{self._id}-{FINISHED}", partition, decision.number, "")
