"""Conversion between formats: down for clients that cannot read v2, up for messages of old clients and logs.

Down: control batches are left out, because old clients would take them for data. Headers are dropped. A compressed
batch becomes one wrapper, an uncompressed batch becomes one message per record. Messages start at `first_offset`,
because old clients that fetch from the middle of a batch expect that. Old clients do not know zstd, so it is refused.

Up: all old messages of a produce request become one v2 batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP
from tailrace.records.batch import (
    HEADER_SIZE,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    Buffer,
    Codec,
    CorruptBatch,
    RecordBatch,
)
from tailrace.records.builder import BatchBuilder
from tailrace.records.legacy import MIN_SIZE, Message, build_messages
from tailrace.records.record import Record, TimestampType, iter_records

LAST_OFFSET_DELTA_END = 27


class HeaderCutShort(CorruptBatch):
    """A v2 batch that is too short to contain its own last offset."""


class Converted(NamedTuple):
    data: bytes
    records_converted: int


def split_any(data: Buffer) -> Iterator[RecordBatch | Message]:
    """Yield consecutive batches and messages of any format. An incomplete last one is left out."""
    view = memoryview(data)
    position = 0
    while len(view) - position > MAGIC_POSITION:
        length = int.from_bytes(view[position + LENGTH_POSITION : position + LOG_OVERHEAD], "big", signed=True)
        size = length + LOG_OVERHEAD
        if size < MIN_SIZE[0]:
            raise CorruptBatch(f"batch length {length} is too small")
        magic = view[position + MAGIC_POSITION]
        if magic > 2:
            raise CorruptBatch(f"unknown magic {magic}")
        if size > len(view) - position:
            return
        piece = view[position : position + size]
        if magic == 2 and size < HEADER_SIZE:
            kind = CorruptBatch if size >= LAST_OFFSET_DELTA_END else HeaderCutShort
            raise kind(f"batch of {size} bytes is smaller than its header of {HEADER_SIZE}")
        yield RecordBatch(piece) if magic == 2 else Message(piece)
        position += size


def down_convert(data: Buffer, to_magic: int, first_offset: int = 0) -> Converted:
    """Convert batches of any format to messages of format `to_magic` (0 or 1), for the response to an old client's
    fetch."""
    if to_magic not in MIN_SIZE:
        raise ValueError(f"magic {to_magic} is not an old format; it is 0 or 1")
    out = bytearray()
    converted = 0
    for batch in split_any(data):
        if isinstance(batch, RecordBatch) and batch.is_control:
            continue
        if batch.codec == Codec.ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                "batches compressed with zstd cannot be converted to old formats",
            )
        if batch.magic <= to_magic:
            out += batch.view
            continue
        records: Iterable[Record]
        if isinstance(batch, RecordBatch):
            records = iter_records(batch)
            timestamp_type = TimestampType(batch.is_log_append_time)
            append_time = batch.max_timestamp
        else:
            records = batch.records()
            timestamp_type = batch.timestamp_type
            append_time = batch.timestamp
        kept = [
            record._replace(headers=()) for record in records if batch.is_compressed or record.offset >= first_offset
        ]
        out += build_messages(
            kept,
            magic=to_magic,
            codec=batch.codec,
            timestamp_type=timestamp_type,
            log_append_time_ms=append_time if timestamp_type == TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP,
        )
        converted += len(kept)
    return Converted(bytes(out), converted)


def up_convert(
    records: Iterable[Record],
    *,
    base_offset: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time_ms: int = NO_TIMESTAMP,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> Converted:
    """Convert records of old messages to one v2 batch whose offsets are consecutive from base_offset."""
    builder = BatchBuilder(
        base_offset=base_offset,
        codec=codec,
        level=level,
        timestamp_type=timestamp_type,
        log_append_time_ms=log_append_time_ms,
        leader_epoch=leader_epoch,
    )
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return Converted(builder.build(), builder.record_count)
