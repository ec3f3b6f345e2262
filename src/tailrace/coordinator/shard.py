"""CoordinatorShard: the state behind one partition of a coordinator's topic.

A request changes nothing by itself. It yields a StateChange, records and a response; the runtime appends the records as
one batch, replays them into the state, and gives the response once they are committed. What a partition's log says, and
nothing else, is what `replay` makes of it, so another broker, or Apache Kafka, comes to the same state.

    operation(shard) ──► StateChange(records, response) ──► append ──► replay(record) ──► committed ──► answer

Records of a transaction (`producer_id` ≥ 0) are kept apart until the transaction ends: `replay_end_transaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset
from tailrace.protocol.message import Message

R = TypeVar("R")
Part: TypeAlias = Callable[[int], object]  # (now_ms): what one group or transaction needs; it may fail alone


class CoordinatorRecord(NamedTuple):
    """A record of a coordinator's topic, decoded; without a value it is a tombstone."""

    key: Message
    value: Message | None
    version: int = 0  # of the value
    offset: Offset = -1  # in the log, once it is there


class EncodedRecord(NamedTuple):
    """A record whose bytes are made by whoever writes it often; only where the runtime does not replay it."""

    key: bytes
    value: bytes | None


class PackedRecords:
    """Records of one kind that are encoded, and replayed, all at once."""

    __slots__ = ()

    size: int  # of the payload, in bytes

    def __len__(self) -> int:
        raise NotImplementedError

    def encode(self) -> bytes:
        """Return the payload of a batch, in which the records count from its first offset and time."""
        raise NotImplementedError

    def replay(self, payload: bytes, first_offset: Offset) -> None:
        """Take the records into the state from the payload that was appended."""
        raise NotImplementedError


class RecordReplay(Protocol):
    """Replays records of a frequent kind from their bytes, for one batch."""

    def take_payload(self, payload: bytes, count: int, base_offset: Offset) -> int:
        """Replay the records up to the first of another kind; return how many were replayed."""

    def take(self, key: bytes, value: bytes | None, record_offset: Offset) -> bool:
        """Replay one record. Return False, with nothing done, if it is of another kind or malformed."""


@dataclass(slots=True)
class StateChange(Generic[R]):
    """What a request asks of the log, and what it is answered with once that is committed."""

    records: Sequence[CoordinatorRecord | EncodedRecord] | PackedRecords
    response: R
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    is_atomic: bool = True  # in one batch, or refused; otherwise in as many as it takes
    is_replayed: bool = True  # False where the state is changed by whoever asked, in `on_done`
    on_done: Callable[[ErrorCode, int], None] | None = None  # (error, now_ms): written and committed, or never


class CoordinatorShard(Protocol):
    family: str  # "group", "transaction" or "share": see `protocol/internal_records/coordinator_records.py`

    def replay(self, record: CoordinatorRecord, producer_id: int, producer_epoch: int) -> None:
        """Take a record into the state: one that was just appended, or one read again from the log."""

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, is_committed: bool) -> None:
        """A transaction has ended: what was pending counts, or never was."""

    def loaded(self, now_ms: int) -> Iterable[Part]:
        """The log has been replayed to its end: give what is to be done now, in parts."""

    def unloaded(self, now_ms: int) -> Iterable[Part]:
        """Another broker goes on, or the partition is gone: whoever waits here is told NOT_COORDINATOR, in parts."""
