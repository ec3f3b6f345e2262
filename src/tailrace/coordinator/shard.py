"""CoordinatorShard: the state behind one partition of a coordinator's topic.

A request returns a StateChange: records and a response. The runtime appends the records as one batch, replays them into
the state, and sends the response once they are committed. The state that survives depends only on the records in the
log. So another broker, or Apache Kafka, that replays the log gets the same state. Before that, a request changes only
what is never in the log: timers and sessions of members, and objects without records, such as a new empty group.
`on_done` undoes these if the records could not be written.

    operation(shard) ──► StateChange(records, response) ──► append ──► replay(record) ──► committed ──► answer

Records of a transaction (`producer_id` ≥ 0) are pending until the transaction ends: `replay_end_transaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset
from tailrace.protocol.message import Message

R = TypeVar("R")
Part: TypeAlias = Callable[[int], object]  # (now_ms): work for one group or transaction, which may fail alone


class CoordinatorRecord(NamedTuple):
    """A decoded record of a coordinator's topic; without a value it is a tombstone."""

    key: Message
    value: Message | None
    version: int = 0  # of the value
    offset: Offset = -1  # of the record in the log; -1 before it is appended


class EncodedRecord(NamedTuple):
    """A record that its caller has encoded, because it is frequent. The runtime does not replay it."""

    key: bytes
    value: bytes | None


class PackedRecords:
    """Records of one kind that are encoded and replayed together."""

    __slots__ = ()

    size: int  # of the payload, in bytes

    def __len__(self) -> int:
        raise NotImplementedError

    def encode(self) -> bytes:
        """Return the payload of a batch. Offsets and times of its records are relative to the batch's first."""
        raise NotImplementedError

    def replay(self, payload: bytes, first_offset: Offset) -> None:
        """Apply the records to the state, from the payload that was appended."""
        raise NotImplementedError


class RecordReplay(Protocol):
    """Replays records of a frequent kind from their bytes, for one batch."""

    def take_payload(self, payload: bytes, count: int, base_offset: Offset) -> int:
        """Replay the records up to the first of another kind; return how many were replayed."""

    def take(self, key: bytes, value: bytes | None, record_offset: Offset) -> bool:
        """Replay one record. Return False, with nothing done, if it is of another kind or malformed."""


@dataclass(slots=True)
class StateChange(Generic[R]):
    """The records and the response of a request. The response is sent once the records are committed."""

    records: Sequence[CoordinatorRecord | EncodedRecord] | PackedRecords
    response: R
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    is_atomic: bool = True  # in one batch, or refused; otherwise in as many batches as needed
    is_replayed: bool = True  # False if `on_done` changes the state instead
    on_done: Callable[[ErrorCode, int], None] | None = None  # (error, now_ms): NONE once committed


class CoordinatorShard(Protocol):
    family: str  # "group", "transaction" or "share": see `protocol/internal_records/coordinator_records.py`

    def replay(self, record: CoordinatorRecord, producer_id: int, producer_epoch: int) -> None:
        """Apply a record to the state: one that was just appended, or one read from the log."""

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, is_committed: bool) -> None:
        """Apply the end of a transaction: its pending records become valid, or are dropped."""

    def loaded(self, now_ms: int) -> Iterable[Part]:
        """Return the work to do after the log has been replayed, in parts."""

    def unloaded(self, now_ms: int) -> Iterable[Part]:
        """Return the work to do when the leadership ends, in parts: waiting requests get NOT_COORDINATOR."""
