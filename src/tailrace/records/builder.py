"""BatchBuilder: builds a v2 batch from records, with the bytes that Kafka's own builder writes.

The base timestamp is the first record's timestamp, or the delete horizon if the batch has one. Offsets are consecutive
by default, but may have gaps, as compaction leaves them. Offset deltas count from the base offset, which may be lower
than the first record's offset. In a log-append-time batch the deltas keep the records' own timestamps, and only the
header has the append time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from tailrace.records import kernels
from tailrace.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Codec,
)
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.record import Record, TimestampType, wrapped

INT_MAX = 2**31 - 1

Headers = Sequence[tuple[str, bytes | None]]


class BatchBuilder:
    """Collects records and builds one batch of them.

    Raises ValueError where Kafka's builder does: for offsets that do not increase, negative timestamps other than -1, a
    transactional batch without a producer id, and a producer id without an epoch or (except in control batches) a
    sequence.
    """

    def __init__(
        self,
        *,
        base_offset: int = 0,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        log_append_time_ms: int = NO_TIMESTAMP,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        leader_epoch: int = NO_LEADER_EPOCH,
        delete_horizon_ms: int | None = None,
    ) -> None:
        if timestamp_type == TimestampType.NO_TIMESTAMP:
            raise ValueError("a v2 batch needs a timestamp type")
        if transactional and producer_id == NO_PRODUCER_ID:
            raise ValueError("a transactional batch needs a producer id")
        if producer_id != NO_PRODUCER_ID:
            if producer_epoch == NO_PRODUCER_EPOCH:
                raise ValueError("a producer id needs a producer epoch")
            if base_sequence < 0 and not control:
                raise ValueError(f"a producer id needs a sequence number, not {base_sequence}")
        self.base_offset = base_offset
        self.codec = codec
        self.level = level
        self.timestamp_type = timestamp_type
        self.log_append_time_ms = log_append_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.transactional = transactional
        self.control = control
        self.leader_epoch = leader_epoch
        self.delete_horizon_ms = delete_horizon_ms
        self.base_timestamp: int | None = delete_horizon_ms
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = -1
        self.last_offset: int | None = None
        self.record_count = 0
        self._payload = bytearray()

    @property
    def next_offset(self) -> int:
        return self.base_offset if self.last_offset is None else self.last_offset + 1

    @property
    def uncompressed_size(self) -> int:
        """Return the size of header and records before compression."""
        return HEADER_SIZE + len(self._payload)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        offset: int | None = None,
    ) -> None:
        if offset is None:
            offset = self.next_offset
        if self.last_offset is not None and offset <= self.last_offset:
            raise ValueError(f"offset {offset} does not follow {self.last_offset}")
        if timestamp < 0 and timestamp != NO_TIMESTAMP:
            raise ValueError(f"timestamp {timestamp} is negative")
        if not offset - self.base_offset <= INT_MAX:
            raise ValueError(f"offset {offset} is too far from the batch's base offset {self.base_offset}")
        if self.base_timestamp is None:
            self.base_timestamp = timestamp
        kernels.encode_record(
            self._payload,
            offset - self.base_offset,
            wrapped(timestamp - self.base_timestamp),
            key,
            value,
            [(name.encode(), content) for name, content in headers] if headers else (),
        )
        self.record_count += 1
        self.last_offset = offset
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.offset_of_max_timestamp = offset

    def append_record(self, record: Record) -> None:
        """Append a record at its own offset."""
        self.append(record.timestamp, record.key, record.value, record.headers, offset=record.offset)

    def extend(self, records: Iterable[Record]) -> None:
        for record in records:
            self.append_record(record)

    def append_encoded(self, payload: bytes, count: int, base_timestamp: int, max_timestamp: int, last: int) -> None:
        """Append records that are already encoded relative to this batch's base offset and to base_timestamp. `last` is
        the offset of the last one."""
        if self.last_offset is not None and last <= self.last_offset:
            raise ValueError(f"offset {last} does not follow {self.last_offset}")
        if self.record_count and base_timestamp != self.base_timestamp:
            raise ValueError(f"encoded records must be relative to the batch's base timestamp {self.base_timestamp}")
        if self.delete_horizon_ms is not None and base_timestamp != self.delete_horizon_ms:
            raise ValueError("encoded records of a batch with a delete horizon must be relative to it")
        if not 0 <= last - self.base_offset <= INT_MAX:
            raise ValueError(f"offset {last} does not fit a batch from {self.base_offset}")
        self._payload += payload
        self.record_count += count
        self.base_timestamp = base_timestamp
        self.max_timestamp = max(max_timestamp, self.max_timestamp)
        self.last_offset = last

    def build(self, *, last_offset: int | None = None) -> bytes:
        """Return the batch, or no bytes without records. `last_offset` may be beyond the last record (compaction)."""
        if self.record_count == 0:
            return b""
        assert self.last_offset is not None
        assert self.base_timestamp is not None
        last_offset = self.last_offset if last_offset is None else last_offset
        log_append_time = self.timestamp_type == TimestampType.LOG_APPEND_TIME
        return assemble_batch(
            compress(self.codec, self._payload, self.level),
            base_offset=self.base_offset,
            last_offset=last_offset,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.log_append_time_ms if log_append_time else self.max_timestamp,
            attributes=batch_attributes(
                self.codec,
                log_append_time=log_append_time,
                transactional=self.transactional,
                control=self.control,
                delete_horizon=self.delete_horizon_ms is not None,
            ),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            leader_epoch=self.leader_epoch,
            record_count=self.record_count,
        )


def batch_attributes(
    codec: Codec,
    *,
    log_append_time: bool = False,
    transactional: bool = False,
    control: bool = False,
    delete_horizon: bool = False,
) -> int:
    return (
        codec
        | (TIMESTAMP_TYPE_BIT if log_append_time else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
        | (DELETE_HORIZON_BIT if delete_horizon else 0)
    )


def assemble_batch(
    payload: bytes,
    *,
    base_offset: int,
    last_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    leader_epoch: int,
    record_count: int,
) -> bytes:
    """Assemble header, checksum and (already compressed) records."""
    if base_timestamp < 0 and base_timestamp != NO_TIMESTAMP:
        raise ValueError(f"base timestamp {base_timestamp} is negative")
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(payload),
        leader_epoch,
        2,
        0,
        attributes,
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    batch += payload
    batch[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]).to_bytes(4, "big")
    return bytes(batch)


def empty_batch(
    *,
    base_offset: int,
    last_offset: int,
    timestamp_type: TimestampType,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    control: bool,
    leader_epoch: int,
) -> bytes:
    """Return a header without records. Compaction keeps it to preserve the producer's last sequence."""
    return assemble_batch(
        b"",
        base_offset=base_offset,
        last_offset=last_offset,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=max_timestamp,
        attributes=batch_attributes(
            Codec.NONE,
            log_append_time=timestamp_type == TimestampType.LOG_APPEND_TIME,
            transactional=transactional,
            control=control,
        ),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
        record_count=0,
    )
