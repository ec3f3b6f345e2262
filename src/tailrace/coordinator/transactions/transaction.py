"""Transaction: the state of one transactional id, and the steps that change it.

                 add partitions         end           markers written
    EMPTY ─────────────► ONGOING ─────► PREPARE_COMMIT ─────► COMPLETE_COMMIT
      ▲  ▲                 │  ▲  └────► PREPARE_ABORT  ─────► COMPLETE_ABORT
      │  └─ init ──────────┼──┴───────────────────────────────┘        │
      └────────────────────┼──────────── init, expiry to DEAD ◄────────┘
                           └► PREPARE_EPOCH_FENCE (an abort by the coordinator; never written)

A step has two halves. `prepare_…` returns the next facts, notes that the step is pending, and changes nothing else.
Once the facts are in the log, `complete` applies them. While a step is pending, every other request gets
CONCURRENT_TRANSACTIONS, so that the client retries. After a failed write `give_up` cancels the step.

There are two protocols, by `client_version`, which follows from the version of the client's requests:

    0   a producer keeps its epoch until it is initialised again
    2   every transaction ends under a new epoch, so that late writes of one cannot get into the next (KIP-890)

The last epoch is never given to a client, because the coordinator fences with it. A producer that has used up its
epochs gets a new id, with epoch 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerId, TopicPartition

EPOCH_MAX: Final = 2**15 - 1
NO_TIME: Final = -1
BUMPS_EPOCH_FROM: Final = 2  # the first transaction.version in which every transaction ends under a new epoch
_NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()


class TransactionState(IntEnum):
    """The states, with their numbers in `__transaction_state` and their titles for users."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        return _TITLES[self]

    @classmethod
    def of_title(cls, title: str) -> TransactionState | None:
        return _BY_TITLE.get(title)


_TITLES: Final = {state: state.name.title().replace("_", "") for state in TransactionState}
_BY_TITLE: Final = {title: state for state, title in _TITLES.items()}

_S = TransactionState
IDLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
ENDING: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})

# The states from which each state can be reached.
TRANSITIONS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: IDLE,
    _S.ONGOING: IDLE | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: IDLE | {_S.ONGOING, _S.PREPARE_EPOCH_FENCE},
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: IDLE,
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}


class Facts(NamedTuple):
    """The state of a transaction, as stored in one record of `__transaction_state`."""

    state: TransactionState
    producer_id: ProducerId
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    next_producer_id: ProducerId = NO_PRODUCER_ID  # returned to the client for its next transaction
    last_producer_epoch: int = NO_PRODUCER_EPOCH  # for retries; not in the log
    timeout_ms: int = 0
    partitions: frozenset[TopicPartition] = _NO_PARTITIONS
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= BUMPS_EPOCH_FROM


def is_epoch_exhausted(epoch: int) -> bool:
    """Return True if this is the last epoch that a client may have."""
    return epoch >= EPOCH_MAX - 1


class Transaction:
    __slots__ = ("facts", "has_failed_fence", "pending", "transactional_id")

    def __init__(self, transactional_id: str, facts: Facts) -> None:
        self.transactional_id = transactional_id
        self.facts = facts
        self.pending: TransactionState | None = None  # on its way into the log
        self.has_failed_fence = False  # the epoch was raised to fence a producer, but the write failed

    def _prepare(self, after: Facts) -> Facts:
        before = self.facts
        assert self.pending is None, f"{self.transactional_id} already has the pending state {self.pending!r}"
        assert before.state in TRANSITIONS[after.state], (
            f"{self.transactional_id} cannot go from {before.state!r} to {after.state!r}"
        )
        assert after.producer_id >= 0, f"{self.transactional_id} has no producer id"
        assert after.producer_epoch >= 0 or after.state is _S.DEAD, f"{self.transactional_id} has no epoch"
        self.pending = after.state
        return after._replace(previous_producer_id=before.producer_id)

    def complete(self, after: Facts) -> None:
        """Apply a step that is in the log."""
        assert self.pending is after.state, f"{self.transactional_id}: {after.state!r} was not prepared"
        assert after.state not in (_S.PREPARE_EPOCH_FENCE, _S.DEAD), f"{after.state!r} is never written"
        self.facts = after
        self.pending = None

    def marker_written(self, partition: TopicPartition) -> None:
        """Note that the marker of a partition is written."""
        assert self.facts.state in ENDING, f"{self.transactional_id} writes no markers in {self.facts.state!r}"
        self.facts = self.facts._replace(partitions=self.facts.partitions - {partition})

    def give_up(self) -> None:
        """Cancel a step that could not be written."""
        self.pending = None

    # Steps

    def prepare_new_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Facts:
        """Plan an InitProducerId without an open transaction: the next epoch, or PRODUCER_FENCED."""
        facts = self.facts
        epoch, last_epoch = facts.producer_epoch, facts.last_producer_epoch
        if facts.is_epoch_exhausted:
            # Kafka fails in the same way if the client expects another epoch than the last possible one.
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{self.transactional_id} has no epoch left after {EPOCH_MAX}; it needs a new producer id",
            )
        if expected_epoch is None:
            new_epoch, new_last = epoch + 1, NO_PRODUCER_EPOCH
        elif epoch == NO_PRODUCER_EPOCH or expected_epoch == epoch:
            new_epoch, new_last = epoch + 1, epoch
        elif expected_epoch == last_epoch:
            new_epoch, new_last = epoch, last_epoch  # a retry of a successful call
        else:
            raise KafkaError(
                ErrorCode.PRODUCER_FENCED,
                f"{self.transactional_id} expects epoch {expected_epoch}, which is neither {epoch} nor {last_epoch}",
            )
        return self._prepare(
            _emptied(facts, timeout_ms, now_ms, producer_epoch=new_epoch, last_producer_epoch=new_last)
        )

    def prepare_new_producer_id(
        self, producer_id: ProducerId, timeout_ms: int, now_ms: int, *, remember_epoch: bool
    ) -> Facts:
        """Plan an InitProducerId after the last epoch: a new id, with epoch 0."""
        facts = self.facts
        last = facts.producer_epoch if remember_epoch else NO_PRODUCER_EPOCH
        return self._prepare(
            _emptied(facts, timeout_ms, now_ms, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last)
        )

    def prepare_add_partitions(self, added: Iterable[TopicPartition], client_version: int, now_ms: int) -> Facts:
        facts = self.facts
        return self._prepare(
            facts._replace(
                state=_S.ONGOING,
                partitions=facts.partitions.union(added),
                start_ms=now_ms if facts.state in IDLE else facts.start_ms,
                last_update_ms=now_ms,
                client_version=client_version,
            )
        )

    def prepare_end(
        self, *, is_commit: bool, client_version: int, next_producer_id: ProducerId, now_ms: int, is_empty: bool = False
    ) -> Facts:
        """Plan a commit or an abort. `is_empty`: the transaction is empty, so it also starts now."""
        facts = self.facts
        epoch, last = facts.producer_epoch, facts.last_producer_epoch
        if client_version >= BUMPS_EPOCH_FROM:
            last = epoch
            if epoch < EPOCH_MAX:
                epoch += 1
            elif is_commit:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"{self.transactional_id} has no epoch left after {EPOCH_MAX}; it needs a new producer id",
                )
        return self._prepare(
            facts._replace(
                state=_S.PREPARE_COMMIT if is_commit else _S.PREPARE_ABORT,
                producer_epoch=epoch,
                last_producer_epoch=last,
                next_producer_id=next_producer_id,
                start_ms=now_ms if is_empty else facts.start_ms,
                last_update_ms=now_ms,
                client_version=client_version,
            )
        )

    def prepare_fenced_abort(self, server_version: int, next_producer_id: ProducerId, now_ms: int) -> Facts:
        """Plan an abort that also fences the present producer, for a new instance or after a timeout."""
        facts = self.facts
        assert facts.state is _S.ONGOING, f"{self.transactional_id} has nothing to fence in {facts.state!r}"
        if server_version < BUMPS_EPOCH_FROM:
            # The raised epoch stays even if the write fails. Then it is not raised a second time.
            epoch = facts.producer_epoch
            if not self.has_failed_fence and epoch < EPOCH_MAX:
                epoch += 1
            self.facts = facts._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
            server_version, next_producer_id = 0, NO_PRODUCER_ID
        return self.prepare_end(
            is_commit=False, client_version=server_version, next_producer_id=next_producer_id, now_ms=now_ms
        )

    def note_fence(self, *, is_written: bool) -> None:
        """Note if the raised epoch of a fence is in the log."""
        self.has_failed_fence = not is_written

    def prepare_complete(self, now_ms: int) -> Facts:
        """Plan the completion after all markers. The client continues with the next producer id, if it got one."""
        self.has_failed_fence = False
        facts = self.facts
        producer_id, epoch = self.after_end(facts)
        return self._prepare(
            facts._replace(
                state=_S.COMPLETE_COMMIT if facts.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT,
                producer_id=producer_id,
                producer_epoch=epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions=_NO_PARTITIONS,
                last_update_ms=now_ms,
            )
        )

    @staticmethod
    def after_end(prepared: Facts) -> tuple[ProducerId, int]:
        """Return the producer id and epoch for a client's next transaction, after an end that was prepared."""
        if prepared.bumps_epoch and prepared.next_producer_id != NO_PRODUCER_ID:
            return prepared.next_producer_id, 0
        return prepared.producer_id, prepared.producer_epoch

    def prepare_dead(self) -> Facts:
        return self._prepare(self.facts._replace(state=_S.DEAD, partitions=_NO_PARTITIONS))


def _emptied(
    facts: Facts,
    timeout_ms: int,
    now_ms: int,
    *,
    producer_epoch: int,
    last_producer_epoch: int,
    producer_id: ProducerId | None = None,
) -> Facts:
    return facts._replace(
        state=_S.EMPTY,
        producer_id=facts.producer_id if producer_id is None else producer_id,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_producer_epoch,
        timeout_ms=timeout_ms,
        partitions=_NO_PARTITIONS,
        start_ms=NO_TIME,
        last_update_ms=now_ms,
    )
