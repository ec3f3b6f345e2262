"""CleanedTransactions: the transactions that are open during a walk over batches, for the cleaner.

A batch does not show if its transaction was committed. The transaction indexes list the aborted transactions. The walk
is in offset order, and the aborted transactions of a segment are added before the segment is walked:

- A data batch of an aborted transaction is removed. Any other belongs to a committed one, because the cleaner never
  walks beyond the last stable offset, where transactions are still open.
- A marker may be removed once its transaction has no batches left. A later round then finds the marker without batches
  before it. While there are batches, the marker stays and an aborted transaction stays in the index. Otherwise its
  records would look committed.
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
        self._seen: set[ProducerId] = set()  # aborted transactions with a batch in the walk
        self._coming: list[tuple[Offset, AbortedTransaction]] = []  # a heap with the earliest transaction on top
        self.retained: list[AbortedTransaction] = []  # ended transactions with remaining batches, for the cleaned index

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add aborted transactions before the walk reaches them. A transaction may be added again."""
        for transaction in transactions:
            heappush(self._coming, (transaction.first_offset, transaction))

    def take_retained(self) -> list[AbortedTransaction]:
        retained, self.retained = self.retained, []
        return retained

    def on_data(self, batch: RecordBatch) -> bool:
        """Walk over a data batch. Return True if its transaction was aborted."""
        self._start_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._seen.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def on_control(self, batch: RecordBatch) -> bool:
        """Walk over a control batch. Return True if it is no longer needed."""
        self._start_up_to(batch.last_offset)
        record = next(iter_records(batch), None)
        if record is None:
            return True  # an empty control batch was cleaned before
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
