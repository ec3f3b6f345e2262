"""Record and RecordHeader: the records inside a batch, decoded on request.

A v2 record. Integers are zigzag varints unless another type is given:

    length of the rest, attributes (int8, unused), timestamp delta (varlong), offset delta,
    key length (-1 = none), key, value length (-1 = none), value,
    header count, then per header: key length, key (UTF-8), value length (-1 = none), value

Deltas count from the batch's base timestamp and base offset. The sequence number is the base sequence plus the offset
delta. In a log-append-time batch every record has the batch's max timestamp, whatever its delta is.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.model.ids import NO_SEQUENCE
from tailrace.records import kernels
from tailrace.records.batch import CODEC_MASK, Codec, CorruptBatch, RecordBatch, increment_sequence
from tailrace.records.codecs.decompression import decompress, decompressed_pieces
from tailrace.records.utf8 import decode_utf8

PORTION_SIZE: Final = 262_144


class TimestampType(IntEnum):
    """The source of a record's timestamp. Messages of format 0 have none."""

    NO_TIMESTAMP = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordHeader(NamedTuple):
    key: str
    value: bytes | None


class Record(NamedTuple):
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    sequence: int = NO_SEQUENCE


def batch_codec(batch: RecordBatch) -> Codec:
    """Return the codec of a batch. Raise CorruptBatch if it is unknown."""
    code = batch.attributes & CODEC_MASK
    if code > Codec.ZSTD:
        raise CorruptBatch(f"unknown compression codec {code}")
    return Codec(code)


def uncompressed_payload(batch: RecordBatch) -> bytes | memoryview:
    """Return the bytes of the records, decompressed if necessary."""
    codec = batch_codec(batch)
    return batch.payload if codec == Codec.NONE else decompress(codec, batch.payload)


def record_portions(batch: RecordBatch, max_size: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Yield the records' bytes, decompressed, in portions of whole records, each with its number of records.

    A portion has about `PORTION_SIZE` bytes, or it is one larger record. A reader therefore needs memory only for the
    largest record, and a loop over a portion takes at most a few milliseconds. Raises CorruptBatch unless the number of
    records in the header fills the payload.
    """
    count = batch.record_count
    if count < 0:
        raise CorruptBatch(f"record count is {count}")
    rest = bytearray()
    index = passed = 0
    for piece in decompressed_pieces(batch_codec(batch), batch.payload, max_size=max_size, piece_size=PORTION_SIZE):
        rest += piece
        end, found = kernels.whole_records(rest, count - index, index, passed)
        if found:
            yield bytes(memoryview(rest)[:end]), found
            index += found
            passed += end
            del rest[:end]
        if index == count and rest:
            raise CorruptBatch(f"{len(rest)} or more bytes follow the last of {count} records")
    if index < count:
        raise CorruptBatch(f"record {index} is broken at byte {passed} of the batch's records")


def iter_records(batch: RecordBatch) -> Iterator[Record]:
    """Yield the records of a v2 batch in order. Raise CorruptBatch, perhaps after some records, if they do not match
    the header."""
    if batch.record_count == 0:
        return  # the cleaner has removed all records of the batch
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    base_sequence = batch.base_sequence
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
    for portion, count in record_portions(batch):
        for offset_delta, timestamp_delta, key, value, headers, _ in kernels.decode_records(portion, count):
            yield Record(
                wrapped(base_offset + offset_delta),
                wrapped(base_timestamp + timestamp_delta) if append_time is None else append_time,
                kind,
                key,
                value,
                tuple([RecordHeader(decode_utf8(name), content) for name, content in headers]) if headers else (),
                increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else NO_SEQUENCE,
            )


def wrapped(value: int) -> int:
    """Return a sum of two int64 with the overflow of Java's long."""
    return (value + 2**63) % 2**64 - 2**63
