"""Transaction: what a coordinator knows of one transactional id, and the steps by which that changes.

                 add partitions         end           markers written
    EMPTY ─────────────► ONGOING ─────► PREPARE_COMMIT ─────► COMPLETE_COMMIT
      ▲  ▲                 │  ▲  └────► PREPARE_ABORT  ─────► COMPLETE_ABORT
      │  └─ init ──────────┼──┴───────────────────────────────┘        │
      └────────────────────┼──────────── init, expiry to DEAD ◄────────┘
                           └► PREPARE_EPOCH_FENCE (an abort that the client did not ask for; never written)

A step has two halves. `prepare_…` says what the transaction will be, notes the state it is on its way to and changes
nothing else; once that is in the log, `complete` makes it so. While a step is on its way every other request is told to
come again (CONCURRENT_TRANSACTIONS). A write that failed is undone by `give_up`.

Two protocols, by `client_version`, which the client's requests tell:

    0   a producer keeps its epoch until it is initialised again
    2   every transaction ends under a new epoch, so what an earlier one left behind cannot slip into the next (KIP-890)

The last epoch is never given to a client: it is what the coordinator fences with. A producer that has used up its
epochs goes on under a new id, with epoch 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerId, TopicPartition

EPOCH_MAX: Final = 2**15 - 1
NO_TIME: Final = -1
BUMPS_EPOCH_FROM: Final = 2  # the transaction.version from which on every transaction ends under a new epoch
_NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()


class TransactionState(IntEnum):
    """As numbered in `__transaction_state`, and named to users."""

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

# From which states a state can be reached.
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
    """Everything that is known of a transaction, as one record of `__transaction_state` has it."""

    state: TransactionState
    producer_id: ProducerId
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    next_producer_id: ProducerId = NO_PRODUCER_ID  # what the client was told to go on with, until it does
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
    """Whether a client has the last epoch that a client may have."""
    return epoch >= EPOCH_MAX - 1


class Transaction:
    __slots__ = ("facts", "has_failed_fence", "pending", "transactional_id")

    def __init__(self, transactional_id: str, facts: Facts) -> None:
        self.transactional_id = transactional_id
        self.facts = facts
        self.pending: TransactionState | None = None  # on its way into the log
        self.has_failed_fence = False  # the epoch was raised to fence a producer, and that could not be written

    def _prepare(self, after: Facts) -> Facts:
        before = self.facts
        assert self.pending is None, f"{self.transactional_id} is on its way to {self.pending!r} already"
        assert before.state in TRANSITIONS[after.state], (
            f"{self.transactional_id} cannot go from {before.state!r} to {after.state!r}"
        )
        assert after.producer_id >= 0, f"{self.transactional_id} has no producer id"
        assert after.producer_epoch >= 0 or after.state is _S.DEAD, f"{self.transactional_id} has no epoch"
        self.pending = after.state
        return after._replace(previous_producer_id=before.producer_id)

    def complete(self, after: Facts) -> None:
        """The step is in the log."""
        assert self.pending is after.state, f"{self.transactional_id}: {after.state!r} was not prepared"
        assert after.state not in (_S.PREPARE_EPOCH_FENCE, _S.DEAD), f"{after.state!r} is never written"
        self.facts = after
        self.pending = None

    def marker_written(self, partition: TopicPartition) -> None:
        """The end is known in a partition."""
        assert self.facts.state in ENDING, f"{self.transactional_id} writes no markers in {self.facts.state!r}"
        self.facts = self.facts._replace(partitions=self.facts.partitions - {partition})

    def give_up(self) -> None:
        """The step could not be written: all is as it was."""
        self.pending = None

    # Steps

    def prepare_new_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Facts:
        """InitProducerId while nothing is open: the next epoch; PRODUCER_FENCED for a producer that was overtaken."""
        facts = self.facts
        epoch, last_epoch = facts.producer_epoch, facts.last_producer_epoch
        if facts.is_epoch_exhausted:
            # Kafka stumbles over this one: a client that expects another epoch than the last there is.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.transactional_id} has used up its epochs")
        if expected_epoch is None:
            new_epoch, new_last = epoch + 1, NO_PRODUCER_EPOCH
        elif epoch == NO_PRODUCER_EPOCH or expected_epoch == epoch:
            new_epoch, new_last = epoch + 1, epoch
        elif expected_epoch == last_epoch:
            new_epoch, new_last = epoch, last_epoch  # a retry of a call that went well
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
        """InitProducerId when the epochs are used up: a new id, from epoch 0."""
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
        """Commit or abort is decided. `is_empty`: nothing was added to it, so it begins as it ends."""
        facts = self.facts
        epoch, last = facts.producer_epoch, facts.last_producer_epoch
        if client_version >= BUMPS_EPOCH_FROM:
            last = epoch
            if epoch < EPOCH_MAX:
                epoch += 1
            elif is_commit:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.transactional_id} has used up its epochs")
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
        """Abort what is open, under an epoch that fences whoever has it open: for a new instance, or a timeout."""
        facts = self.facts
        assert facts.state is _S.ONGOING, f"{self.transactional_id} has nothing to fence in {facts.state!r}"
        if server_version < BUMPS_EPOCH_FROM:
            # The raised epoch stays even if it cannot be written; it is not raised a second time then.
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
        """All markers are written, or will be; the client goes on under the next producer id, if it was told one."""
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
        """With which producer id and epoch a client goes on after an end that was prepared."""
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
