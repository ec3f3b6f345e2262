"""Ledger: what was decided about a query's micro-batches, kept in the cluster that they are written to.

Its page is a group that is called as the query's transactional ids begin. The driver alone writes there, always in a
transaction under that same name, so that of two drivers only the one that began last can: `open` fences the other.

    standing = ledger.open()            before a micro-batch: fence, read, carry out what was decided
    ledger.decide(fence, decision)      all or nothing: from here on the micro-batch is to be seen
    ledger.carry_out(decision)          commit the tasks' transactions, note that this is done

The protocol as a whole: docs/decisions/0020-exactly-once-sink.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import commit_offset, committed_offsets
from tailrace.client.producing.transactions import Transaction, TransactionLost, Transactions
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.spark.sink.decision import Decision, Share, from_notes, piece_count, to_notes
from tailrace.spark.sink.errors import AnotherRun, NotWritten

FINISHED: Final = "finished"
FEW: Final = 8  # transactions are ended one after another; more of them by several threads
THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to decide about the next micro-batch; a later `open` takes it away."""

    transaction: Transaction
    number: int  # of the last decision that was there


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand before a micro-batch."""

    fence: Fence
    last: Decision | None = None
    lost: tuple[Share, ...] = ()  # of the last decision: what was aborted before it could be committed


class Ledger:
    def __init__(self, coordinators: Coordinators, transactional_id: str, timeout_ms: int) -> None:
        self._coordinators = coordinators
        self._transactions = Transactions(self._coordinators)
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._task_ids = re.compile(re.escape(transactional_id) + r"-\d+-\d+")

    def open(self) -> Standing:
        """Take over from whoever wrote before. What was decided is carried out; what was not is aborted."""
        transaction = self._transactions.begin(self._id, self._timeout_ms)
        last = self.last_decision()
        lost: tuple[Share, ...] = ()
        if last is not None and self._finished_number() < last.number:
            lost = self.commit(last.shares)
            if not lost:
                self._note_finished(last)
        self.abort_leftovers()
        return Standing(Fence(transaction, last.number if last else 0), last, lost)

    def decide(self, fence: Fence, decision: Decision) -> None:
        """Settle that a micro-batch is to be seen; AnotherRun if somebody else has taken over."""
        notes = to_notes(decision)
        try:
            for group, note in zip(self._pages(len(notes)), notes, strict=True):
                place = TopicPartition(decision.topic, 0)
                self._transactions.commit_offset(fence.transaction, group, place, decision.number, note)
            self._transactions.end(fence.transaction, commit=True)
        except TransactionLost as error:
            raise AnotherRun(
                f"batch {decision.batch} is not committed: does the same query run elsewhere? {error}"
            ) from None

    def carry_out(self, decision: Decision) -> None:
        """Commit what was decided; NotWritten names the tasks whose transactions had been aborted before."""
        lost = self.commit(decision.shares)
        if lost:
            tasks = ", ".join(str(share.task) for share in lost)
            raise NotWritten(
                f"batch {decision.batch} lacks the rows of task {tasks}: their transactions were aborted before they "
                "could be committed; started again, the query writes them again"
            )
        self._note_finished(decision)
        self.abort_leftovers()

    def give_up(self, fence: Fence, shares: Iterable[Share]) -> None:
        """Abort what tasks wrote, unless it was decided after all (then carry it out), or others have taken over."""
        try:
            self._transactions.end(fence.transaction, commit=False)
        except TransactionLost as error:
            # Nothing to abort, or committed: the page tells. Anything else: whoever fenced us looks after it.
            if error.code != ErrorCode.INVALID_TXN_STATE:
                return
        last = self.last_decision()
        if last is not None and last.number > fence.number:
            if not self.commit(last.shares):
                self._note_finished(last)
        else:
            self.abort(shares)

    def commit(self, shares: Iterable[Share]) -> tuple[Share, ...]:
        """Commit tasks' transactions; returns those that had been aborted before."""
        wanted = list(shares)
        return tuple(share for share, done in zip(wanted, self._end_all(wanted), strict=True) if not done)

    def _end_all(self, shares: list[Share]) -> list[bool]:
        """Commit many at once: each waits for the coordinator's disk, and a broker answers a connection in turn."""
        if len(shares) < FEW:
            return [self._is_ended(share, commit=True) for share in shares]
        cluster = self._coordinators.cluster

        def end_some(some: list[Share]) -> list[bool]:
            with ClusterClient(cluster.bootstrap, cluster.settings) as own:
                ledger = Ledger(Coordinators(own), self._id, self._timeout_ms)
                return [ledger._is_ended(share, commit=True) for share in some]

        size = -(-len(shares) // THREADS)
        parts = [shares[start : start + size] for start in range(0, len(shares), size)]
        with ThreadPoolExecutor(THREADS) as threads:
            return [done for part in threads.map(end_some, parts) for done in part]

    def abort(self, shares: Iterable[Share]) -> None:
        """Abort tasks' transactions, and what others of these tasks' attempts left open."""
        for share in shares:
            self._is_ended(share, commit=False)  # if not, it was aborted before
        self.abort_leftovers()

    def _is_ended(self, share: Share, *, commit: bool) -> bool:
        try:
            self._transactions.end(share.transaction(self._id), commit=commit)
        except TransactionLost:
            return False
        return True

    def abort_leftovers(self) -> None:
        """Abort what failed tasks, and attempts that came second, left open: readers wait for open transactions."""
        for name in self._transactions.ongoing(self._task_ids):
            self._transactions.begin(name, self._timeout_ms)

    def last_decision(self) -> Decision | None:
        offsets = committed_offsets(self._coordinators, self._id)
        if not offsets:
            return None
        place, newest = max(offsets.items(), key=lambda found: found[1].offset)
        more = self._pages(piece_count(newest.note))[1:]
        return from_notes([newest.note, *(committed_offsets(self._coordinators, page)[place].note for page in more)])

    def _pages(self, count: int) -> list[str]:
        return [self._id, *(f"{self._id}-{number}" for number in range(1, count))]

    def _finished_number(self) -> int:
        offsets = committed_offsets(self._coordinators, f"{self._id}-{FINISHED}")
        return max((found.offset for found in offsets.values()), default=0)

    def _note_finished(self, decision: Decision) -> None:
        """So that the next `open` need not ask about each transaction. Nothing depends on it but time."""
        place = TopicPartition(decision.topic, 0)
        commit_offset(self._coordinators, f"{self._id}-{FINISHED}", place, decision.number, "")
