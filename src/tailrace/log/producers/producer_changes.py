"""ProducerChanges: the changes of the producer states by the batches that are placed in a log and not yet written.

Nearly every batch is the next in its producer's sequence and neither begins nor ends a transaction. `add_next` accepts
it, also after other placed batches of the same producer. `plan` checks any other batch, and only against written
batches. If the producer is among the `placed`, its batches must be written first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tailrace.log.producers.producer_append import EndedTransaction, ProducerAppend
from tailrace.log.producers.producer_state import AppendedBatch, ProducerState
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
        # the last batch of each producer; None if it was planned
        self.placed: dict[ProducerId, RecordBatch | None] = {}

    def add_next(self, batch: RecordBatch) -> bool:
        """Accept a batch that is the next of its producer, also after placed ones. Return False for any other batch."""
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
    ) -> AppendedBatch | None:
        """Check batches, each with its future position. Raise KafkaError if one of them is refused.

        Returns the written batch that one of them duplicates. In that case none of them is to be appended.
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
        """Drop the changes, because the batches are not written."""
        self._next, self._plans, self.placed = [], [], {}

    def apply(self) -> list[AbortedTransaction] | None:
        """Change the states. Return the aborted transactions, or None if no transaction can have begun or ended."""
        states, plans = self._states, self._plans
        states.keep_for_snapshot(self.placed)
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
