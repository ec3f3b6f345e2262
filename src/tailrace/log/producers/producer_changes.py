"""ProducerChanges: what the batches that are placed in a log will change in the producer states, once they are written.

Nearly every batch is the next of its producer's sequence and neither begins nor ends a transaction: `add_next` takes
it, also behind others of the same producer. Any other batch is checked by `plan`, and only against written batches:
while its producer is among the `placed`, their batches must be written first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tailrace.log.producers.producer_append import EndedTransaction, ProducerAppend
from tailrace.log.producers.producer_state import BatchMemory, ProducerState
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.position import LogPosition
from tailrace.model.ids import ProducerId
from tailrace.records.batch import RecordBatch
from tailrace.records.checks.validation import Origin


class _Plan(NamedTuple):
    appends: dict[ProducerId, ProducerAppend]
    ended: list[EndedTransaction]
    transactional: list[RecordBatch]


class ProducerChanges:
    __slots__ = ("_next", "_plans", "_states", "placed")

    def __init__(self, states: ProducerStates) -> None:
        self._states = states
        self._next: list[tuple[ProducerState, RecordBatch]] = []
        self._plans: list[_Plan] = []
        self.placed: dict[ProducerId, RecordBatch | None] = {}  # the last batch of each, None if it was planned

    def add_next(self, batch: RecordBatch) -> bool:
        """Take a batch that is the next of its producer, also behind placed ones. Return False for any other batch."""
        states, placed, producer_id = self._states, self.placed, batch.producer_id
        state = states.producers.get(producer_id)
        if state is None or producer_id in states.verifications:
            return False
        before = None
        if placed and producer_id in placed:
            before = placed[producer_id]
            if before is None:
                return False
        if not state.is_continued_by(batch, before):
            return False
        self._next.append((state, batch))
        placed[producer_id] = batch
        return True

    def plan(
        self,
        batches: Iterable[tuple[LogPosition, RecordBatch]],
        origin: Origin,
        transaction_version: int,
    ) -> BatchMemory | None:
        """Check batches, each with the position it will have. Raise KafkaError if one of them is refused.

        Returns the written batch that one of them repeats: then none of them is to be appended.
        """
        states = self._states
        appends: dict[ProducerId, ProducerAppend] = {}
        ended: list[EndedTransaction] = []
        transactional: list[RecordBatch] = []
        for position, batch in batches:
            producer_id = batch.producer_id
            if origin is Origin.CLIENT and (known := states.producers.get(producer_id)):
                duplicate = known.duplicate_of(batch)
                if duplicate is not None:
                    return duplicate
            append = appends.get(producer_id)
            if append is None:
                append = appends[producer_id] = states.prepare(producer_id, origin)
            over = append.add(batch, position if batch.is_transactional else None, transaction_version)
            if over is not None:
                ended.append(over)
            if batch.is_transactional:
                transactional.append(batch)
        self._plans.append(_Plan(appends, ended, transactional))
        self.placed.update(dict.fromkeys(appends))
        return None

    def discard(self) -> None:
        """Forget the changes: the batches are not written."""
        self._next, self._plans, self.placed = [], [], {}

    def apply(self) -> list[AbortedTransaction] | None:
        """Change the states. Return the transactions that are aborted, None if none can have begun or ended."""
        states, plans = self._states, self._plans
        for state, batch in self._next:
            state.note_next(batch)
        self.discard()
        if not plans:
            return None
        aborted: list[AbortedTransaction] = []
        for plan in plans:
            for batch in plan.transactional:
                states.verified(batch)
            states.apply_all(plan.appends)
            for ended in plan.ended:
                if ended.is_aborted:
                    stable = states.last_stable_offset_after(ended)
                    aborted.append(AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable))
                states.complete(ended)
        return aborted
