"""CleanedTransactions: the transactions that a walk over batches is inside of, for the cleaner.

A batch does not say whether its transaction was committed; the transaction indexes name the aborted ones. Walking in
offset order, with the aborted transactions of each segment added before it is walked:

- A data batch of an aborted transaction goes. Any other is of a committed one (the cleaner never walks past the last
  stable offset, so no transaction is still open).
- A marker may go once no batch of its transaction is left: then a later round finds it after nothing. While batches
  are left the marker stays, and an aborted transaction stays in the index, or its records would look committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.ids import Offset, ProducerId
from tailrace.records.batch import RecordBatch
from tailrace.records.control_records import ControlType, control_type
from tailrace.records.record import iter_records


class CleanedTransactions:
    def __init__(self) -> None:
        self._committed: set[ProducerId] = set()
        self._aborted: dict[ProducerId, AbortedTransaction] = {}
        self._seen: set[ProducerId] = set()  # of the aborted ones, those with a batch in the walk
        self._coming: list[tuple[Offset, AbortedTransaction]] = []  # a heap: the one that starts first is on top
        self.retained: list[AbortedTransaction] = []  # ended, with batches left: what the cleaned index must name

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Make aborted transactions known before the walk reaches them; one may be named again."""
        for transaction in transactions:
            heappush(self._coming, (transaction.first_offset, transaction))

    def take_retained(self) -> list[AbortedTransaction]:
        retained, self.retained = self.retained, []
        return retained

    def on_data(self, batch: RecordBatch) -> bool:
        """Walk over a data batch; whether its transaction was aborted."""
        self._start_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._seen.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def on_control(self, batch: RecordBatch) -> bool:
        """Walk over a control batch; whether nothing needs it any more."""
        self._start_up_to(batch.last_offset)
        record = next(iter_records(batch), None)
        if record is None:
            return True  # an empty one has been cleaned before
        kind = control_type(record.key)
        if kind == ControlType.ABORT:
            transaction = self._aborted.pop(batch.producer_id, None)
            if transaction is None or batch.producer_id not in self._seen:
                return True
            self._seen.discard(batch.producer_id)
            self.retained.append(transaction)
            return False
        if kind == ControlType.COMMIT:
            if batch.producer_id in self._committed:
                self._committed.discard(batch.producer_id)
                return False
            return True
        return False

    def _start_up_to(self, offset: Offset) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, transaction = heappop(self._coming)
            self._aborted.setdefault(transaction.producer_id, transaction)
