"""Results of Apache Kafka through the oracle, as plain values.

Names follow ours, not Java's. Offsets and times are integers, `None` stands for an empty Optional.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Literal

Origin = Literal["CLIENT", "COORDINATOR", "REPLICATION", "RAFT_LEADER"]
Isolation = Literal["LOG_END", "HIGH_WATERMARK", "TXN_COMMITTED"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
TimestampType = Literal["CreateTime", "LogAppendTime", "NoTimestampType"]

Json = dict[str, Any]


class OracleError(Exception):
    """An exception of Kafka: `kind` is its simple class name, `code` the protocol error that a client would get.

    For a batch that is refused record by record (RecordValidationException), `kind` is the inner exception, and
    `record_errors` has the refused records as (index in the batch, reason).
    """

    def __init__(self, failure: Json) -> None:
        self.java_class: str = failure["class"]
        self.kind: str = failure["cause"].rsplit(".", 1)[-1].rsplit("$", 1)[-1]
        self.message: str = failure["message"]
        self.code: str = failure["code"]
        self.record_errors: list[tuple[int, str | None]] = [(i, why) for i, why in failure.get("record_errors", ())]
        self.trace: str = failure["trace"]
        super().__init__(f"{self.kind} ({self.code}): {self.message}")


@dataclass(frozen=True, slots=True)
class AppendInfo:
    first_offset: int
    last_offset: int
    last_leader_epoch: int | None
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    source_compression: str
    valid_bytes: int
    leader_hw_change: str
    record_errors: tuple[tuple[int, str | None], ...] = ()

    @classmethod
    def parse(cls, answer: Json) -> AppendInfo:
        errors = tuple((index, why) for index, why in answer.pop("record_errors"))
        return cls(**answer, record_errors=errors)


@dataclass(frozen=True, slots=True)
class OffsetPosition:
    """The place of an offset. Base and position are -1 where Kafka knows the offset only."""

    offset: int
    segment_base_offset: int
    position: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    position: OffsetPosition
    records: bytes
    first_entry_incomplete: bool
    aborted_transactions: list[tuple[int, int]] | None  # (producer id, first offset), only for TXN_COMMITTED

    @classmethod
    def parse(cls, answer: Json) -> ReadResult:
        aborted = answer["aborted_transactions"]
        return cls(
            position=OffsetPosition(*answer["position"]),
            records=from_base64(answer["records"]),
            first_entry_incomplete=answer["first_entry_incomplete"],
            aborted_transactions=None if aborted is None else [(producer, first) for producer, first in aborted],
        )


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    timestamp: int
    offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class LogState:
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    first_unstable_offset: int | None
    recovery_point: int
    size: int
    segments: list[int]  # base offsets
    leader_epochs: list[tuple[int, int]]  # (epoch, start offset)
    producer_snapshot: int | None  # offset of the latest snapshot
    producer_state_end: int

    @classmethod
    def parse(cls, answer: Json) -> LogState:
        epochs = [(epoch, start) for epoch, start in answer.pop("leader_epochs")]
        return cls(**answer, leader_epochs=epochs)


@dataclass(frozen=True, slots=True)
class SegmentState:
    base_offset: int
    size: int
    next_offset: int
    largest_timestamp: int
    offset_of_largest_timestamp: int
    first_batch_timestamp: int
    last_modified: int
    offset_index_entries: int
    time_index_entries: int
    aborted_transactions: list[AbortedTransaction]

    @classmethod
    def parse(cls, answer: Json) -> SegmentState:
        aborted = [AbortedTransaction(**entry) for entry in answer.pop("aborted_transactions")]
        return cls(**answer, aborted_transactions=aborted)


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Producer:
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp: int
    current_transaction_first_offset: int | None
    batches: list[ProducerBatch]

    @classmethod
    def parse(cls, answer: Json) -> Producer:
        batches = [ProducerBatch(**batch) for batch in answer.pop("batches")]
        return cls(**answer, batches=batches)


@dataclass(frozen=True, slots=True)
class Producers:
    """Producer state; transactions are (producer id, first offset, last offset or None while open)."""

    map_end_offset: int
    producers: list[Producer]  # by id
    ongoing: list[tuple[int, int, int | None]]
    unreplicated: list[tuple[int, int, int | None]]

    @classmethod
    def parse(cls, answer: Json) -> Producers:
        return cls(
            map_end_offset=answer["map_end_offset"],
            producers=[Producer.parse(entry) for entry in answer["producers"]],
            ongoing=[(producer, first, last) for producer, first, last in answer["ongoing"]],
            unreplicated=[(producer, first, last) for producer, first, last in answer["unreplicated"]],
        )


@dataclass(frozen=True, slots=True)
class CleanableOffsets:
    first_dirty_offset: int
    first_uncleanable_offset: int
    force_update_checkpoint: bool
    clean_bytes: int
    cleanable_bytes: int
    cleanable_ratio: float
    compaction_delay_ms: int


@dataclass(frozen=True, slots=True)
class CleanResult:
    from_offset: int
    to_offset: int  # the next first dirty offset, which the cleaner checkpoint keeps
    bytes_read: int
    bytes_written: int
    messages_read: int
    messages_written: int
    map_messages_read: int
    invalid_messages_read: int
    buffer_utilization: float


@dataclass(frozen=True, slots=True)
class OracleRecord:
    """A record to build, or one that Kafka decoded; `offset` None continues from the previous record."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = -1
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    offset: int | None = None
    sequence: int | None = None  # decoded only
    size: int | None = None  # decoded only

    @classmethod
    def parse(cls, answer: Json) -> OracleRecord:
        return cls(
            key=maybe_from_base64(answer["key"]),
            value=maybe_from_base64(answer["value"]),
            timestamp=answer["timestamp"],
            headers=tuple((from_base64(key), maybe_from_base64(value)) for key, value in answer["headers"]),
            offset=answer["offset"],
            sequence=answer.get("sequence"),
            size=answer.get("size"),
        )

    def encode(self) -> Json:
        return {
            "key": maybe_to_base64(self.key),
            "value": maybe_to_base64(self.value),
            "timestamp": self.timestamp,
            "headers": [{"key": to_base64(key), "value": maybe_to_base64(value)} for key, value in self.headers],
            "offset": self.offset,
        }


@dataclass(frozen=True, slots=True)
class OracleBatch:
    magic: int
    size: int
    valid: bool
    base_offset: int
    last_offset: int
    next_offset: int
    codec: str
    timestamp_type: str
    max_timestamp: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    transactional: bool
    control: bool
    delete_horizon_ms: int | None
    count: int | None  # None for v0 and v1, which have no count
    crc: int
    records: list[OracleRecord] = field(default_factory=list)
    error: OracleError | None = None  # why the records could not be read

    @classmethod
    def parse(cls, answer: Json) -> OracleBatch:
        records = [OracleRecord.parse(record) for record in answer.pop("records", ())]
        failure = answer.pop("error", None)
        return cls(**answer, records=records, error=OracleError(failure) if failure else None)


@dataclass(frozen=True, slots=True)
class ValidationResult:
    records: bytes
    next_offset: int
    log_append_time: int
    max_timestamp: int
    size_may_have_changed: bool
    records_converted: int


@dataclass(frozen=True, slots=True)
class FilterResult:
    records: bytes
    messages_read: int
    bytes_read: int
    messages_retained: int
    bytes_retained: int
    max_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int


def to_base64(data: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    return base64.b64decode(text)


def maybe_to_base64(data: bytes | None) -> str | None:
    return None if data is None else to_base64(data)


def maybe_from_base64(text: str | None) -> bytes | None:
    return None if text is None else from_base64(text)
